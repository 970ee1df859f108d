import ReelhaulSystem
import TaskCore

/// The staging file of one generation as a download sees it: which bytes are written, and which are on stable storage.
/// Another thread opens the file while the first bytes arrive.
// @unchecked: used only on the download's loop.
final class StagedFile: @unchecked Sendable {
  enum State {
    case opening
    case open(StagingFile)
    case failed(StorageError)
  }

  let generation: Int
  /// The size of the source; `nil` if the server does not announce it.
  let size: Int64?
  private(set) var state: State
  /// Closed until the file is open or could not be opened.
  let opening: Latch
  private(set) var written: ByteRanges
  private(set) var durable: ByteRanges
  /// How many bytes the last recorded checkpoint that names the file has; nil if there is none.
  var recorded: Int64?

  /// A new file that is being opened.
  init(generation: Int, size: Int64?) {
    self.generation = generation
    self.size = size
    state = .opening
    opening = Latch(isClosed: true)
    written = ByteRanges()
    durable = ByteRanges()
  }

  /// The file of an earlier run, with the ranges that it recorded.
  init(_ file: StagingFile, size: Int64?, done: ByteRanges) {
    generation = file.name.generation
    self.size = size
    state = .open(file)
    opening = Latch()
    written = done
    durable = done
    recorded = done.count
  }

  var file: StagingFile? {
    if case .open(let file) = state { file } else { nil }
  }

  func opened(_ result: Result<StagingFile, StorageError>) {
    switch result {
    case .success(let file): state = .open(file)
    case .failure(let error): state = .failed(error)
    }
    opening.open()
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) {
    switch state {
    case .opening: preconditionFailure("the file is not open yet")
    case .open(let file): try file.write(bytes, at: offset)
    case .failed(let error): throw error
    }
    written.insert(offset..<offset + Int64(bytes.count))
  }

  /// A sync has succeeded; `ranges` were written before it.
  func synced(_ ranges: ByteRanges) {
    durable = ranges
  }

  /// Whether a checkpoint that names the file is recorded.
  var isRecorded: Bool { recorded != nil }

  /// What a run that can record nothing any more leaves behind in vain.
  var unrecorded: Int64 { written.count - (recorded ?? 0) }

  var unsynced: Int64 { written.count - durable.count }
}

/// The checksum with which the next run checks that the staging file has the recorded bytes: the CRC32C of the last
/// recorded range, of at most its last 64 KiB.
enum TailCheck {
  static let length: Int64 = 64 << 10

  /// Returns `nil` if nothing is recorded. Blocks.
  static func crc(of done: ByteRanges, in file: StagingFile) throws(StorageError) -> UInt32? {
    guard let last = done.ranges.last else { return nil }
    let tail = try file.read(max(last.lowerBound, last.upperBound - length)..<last.upperBound)
    return tail.withUnsafeBytes { crc32c($0) }
  }
}
