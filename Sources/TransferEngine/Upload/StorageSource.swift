import Glibc
import ReelhaulSystem
import TaskCore

/// A file of a storage root. It is held open: a file that is renamed over it is another version.
final class StorageSource: OpenedSource {
  let identity: UploadIdentity
  var isStrong: Bool { true }
  private let file: FileDescriptor
  private let url: StorageURL
  private let volume: Volume
  private let root: StorageRoot

  /// Blocks.
  private init(_ url: StorageURL, on volume: Volume, root: StorageRoot) throws {
    let isThere: Bool
    do throws(StorageError) {
      isThere = try volume.hasFile(at: url)
    } catch {
      guard error.code == .destinationInvalid else { throw error }
      throw TaskFailure(code: .sourceInvalid, message: "\(error)", class: .fail)
    }
    guard isThere else {
      throw TaskFailure(code: .sourceMissing, message: "there is no file \(url)", class: .retry)
    }
    file = try volume.open(url)
    self.url = url
    self.volume = volume
    self.root = root
    identity = UploadIdentity(try file.status())
  }

  /// Throws ``TaskFailure``, and `CancellationError` if the root was closed.
  static func open(_ url: StorageURL, in root: StorageRoot) async throws -> StorageSource {
    try await failing(root) { try await root.withVolume { try StorageSource(url, on: $0, root: root) } }
  }

  func read(_ range: Range<Int64>) async throws -> ArraySlice<UInt8> {
    try await Self.failing(root) { try await root.files.run { [self] in try readNow(range)[...] } }
  }

  func check() async throws {
    try await Self.failing(root) {
      try await root.files.run { [self] in
        // The name may lead to another file by now.
        guard try volume.hasFile(at: url), try UploadIdentity(volume.open(url).status()) == identity else {
          throw UploadSourceChanged()
        }
      }
    }
  }

  func mismatch(
    _ expect: Expectation, seeing see: @escaping @Sendable (UnsafeRawBufferPointer) -> Void,
    while goesOn: @escaping @Sendable (_ offset: Int64) -> Bool
  ) async throws -> String? {
    if let difference = identity.mismatch(expect) { return difference }
    guard expect.hasDigest else { return nil }
    return try await Self.failing(root) {
      try await root.readWhole(pulse: {}) { [self] in
        let digests = try FileDigests(of: file, withMD5: expect.md5 != nil, seeing: see, while: goesOn)
        return DigestMismatch(expect, digests)?.description
      }
    }
  }

  /// Lets `file`, which is empty, share all blocks; false if that is not possible. Blocks.
  func clone(to file: StagingFile) throws -> Bool {
    guard try file.clone(self.file) else { return false }
    try checkFile()
    return true
  }

  /// Copies a part to the same place in `file`. No other version is written, also by a run that has lost its task and
  /// does not know it: its successor's file has the bytes of this one. Blocks.
  func copy(_ range: Range<Int64>, to file: StagingFile, while mayWrite: () -> Bool) throws {
    // A failure of the source is none of the file.
    var failure: SystemError?
    let end = try file.copy(range, from: self.file) {
      do throws(SystemError) {
        let now = UploadIdentity(try self.file.status())
        return mayWrite() && now == identity
      } catch {
        failure = error
        return false
      }
    }
    if let failure { throw failure }
    switch end {
    case .reached(range.upperBound): try checkFile()
    case .reached: throw UploadSourceChanged()
    case .unreadable(let error): throw error
    }
  }

  private func checkFile() throws {
    guard try UploadIdentity(file.status()) == identity else { throw UploadSourceChanged() }
  }

  private static func failing<Result>(
    _ root: StorageRoot, _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await body()
    } catch let error as StorageError {
      throw error.failure
    } catch let error as SystemError where error.errno != ECANCELED {
      throw StorageError(error, storage: root.name).failure
    }
  }

  /// Blocks.
  private func readNow(_ range: Range<Int64>) throws -> [UInt8] {
    let bytes = try file.read(range)
    guard bytes.count == range.count else { throw UploadSourceChanged() }
    try checkFile()
    return bytes
  }
}

extension UploadIdentity {
  fileprivate init(_ status: stat) {
    size = Int64(status.st_size)
    // Not the device: hosts that share a file system number it differently.
    version =
      "\(status.st_ino)-\(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)-\(status.st_ctim.tv_sec).\(status.st_ctim.tv_nsec)"
  }
}
