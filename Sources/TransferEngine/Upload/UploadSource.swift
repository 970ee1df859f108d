import Glibc
import ReelhaulSystem
import TaskCore

/// The bytes that are uploaded. They are one version of a file: every read fails once it is another one.
package protocol UploadSource: Sendable {
  var identity: UploadIdentity { get }
  /// Whether all its bytes are in memory, and counted: then a part needs no more of it.
  var isHeld: Bool { get }
  /// Whether its reads are requests to a server.
  var needsConnections: Bool { get }
  /// The bytes that are best read at once: reads begin and end where such blocks do.
  var block: Int64 { get }
  /// All that is read for these bytes: more, where only whole blocks can be checked.
  func whole(_ range: Range<Int64>) -> Range<Int64>
  /// What an object of S3 has beside its bytes, and what its copy gets: what its content is, and metadata of users.
  var properties: [HeaderField] { get }
  /// The fields with which a store is asked to copy this very version by itself; nil where it cannot be asked.
  var copyFields: [HeaderField]? { get }

  /// Exactly these bytes. Throws ``UploadSourceChanged`` if the source is not the same any more.
  func read(_ range: Range<Int64>) async throws -> ArraySlice<UInt8>

  /// Throws ``UploadSourceChanged`` if the source is not the same any more.
  func check() async throws
}

/// A source as it is opened, of which nothing is checked yet.
protocol OpenedSource: UploadSource {
  /// Whether its identity tells all its versions apart. Otherwise two reads may give bytes of two versions.
  var isStrong: Bool { get }

  /// The first difference from what is expected, for people; nil if there is none. Reads the whole source if a digest is
  /// expected or if it is not strong, lets `see` have all bytes in their order, and calls `goesOn` with every offset that
  /// it reaches: false ends it.
  func mismatch(
    _ expect: Expectation, seeing see: @escaping @Sendable (UnsafeRawBufferPointer) -> Void,
    while goesOn: @escaping @Sendable (_ offset: Int64) -> Bool
  ) async throws -> String?
}

extension UploadSource {
  package var isHeld: Bool { false }
  package var needsConnections: Bool { false }
  package var block: Int64 { 1 << 20 }
  package func whole(_ range: Range<Int64>) -> Range<Int64> { range }
  package var properties: [HeaderField] { [] }
  package var copyFields: [HeaderField]? { nil }

  /// What is read at once of `range`, from `offset` on.
  func block(at offset: Int64, of range: Range<Int64>) -> Range<Int64> {
    offset..<offset + min(range.upperBound - offset, block - offset % block)
  }

  /// At most so many bytes of `range`, from `offset` on. They end where a block does that would be read for its beginning
  /// alone.
  func piece(at offset: Int64, of range: Range<Int64>, most: Int64) -> Range<Int64> {
    let end = offset + min(range.upperBound - offset, most)
    let edge = end / block * block
    return offset..<(edge > offset && whole(offset..<end).upperBound > end ? edge : end)
  }

  /// Reads all of it, or its first bytes, block by block.
  func readAll(first count: Int64? = nil, _ body: (UnsafeRawBufferPointer) -> Void) async throws {
    var offset: Int64 = 0
    let size = count ?? identity.size
    while offset < size {
      try Task.checkCancellation()
      let next = block(at: offset, of: 0..<size)
      try await read(next).withUnsafeBytes { body($0) }
      offset = next.upperBound
    }
  }
}

/// Identifies a version of a source.
package struct UploadIdentity: Hashable, Sendable {
  package var size: Int64
  /// What tells it from other versions: of a file its inode and times, of a URL its validator.
  package var version: String
}

/// The source was changed while it was uploaded.
package struct UploadSourceChanged: Error, Hashable, Sendable {}

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
  func mismatch(_ expect: Expectation) -> String? {
    guard let bytes = expect.bytes, bytes != size else { return nil }
    return "it has \(size) bytes, but \(bytes) were expected"
  }

  fileprivate init(_ status: stat) {
    size = Int64(status.st_size)
    // Not the device: hosts that share a file system number it differently.
    version =
      "\(status.st_ino)-\(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)-\(status.st_ctim.tv_sec).\(status.st_ctim.tv_nsec)"
  }
}
