import ReelhaulCodec
import TaskCore
import TransferEngine

/// Which parts of a transfer are recorded as safely there, as its checkpoint tells.
package enum RecordedWork: Equatable {
  /// A download: the byte ranges on stable storage.
  case ranges(ByteRanges, size: Int64?)
  /// An upload or copy of `size` bytes: what its destination had confirmed, which is sent in parts of `part` bytes.
  case parts(ByteRanges, part: Int64, size: Int64)

  /// Nil for other kinds, and for a checkpoint that this program cannot read.
  package init?(_ checkpoint: Checkpoint, of kind: TaskKind) {
    switch kind {
    case .download:
      guard let download = try? DownloadCheckpoint(checkpoint) else { return nil }
      self = .ranges(download.done, size: download.identity.size)
    case .upload, .copy:
      guard let upload = try? UploadCheckpoint(checkpoint), upload.session != nil else { return nil }
      self = .parts(upload.done, part: upload.plan.segmentSize, size: upload.identity.size)
    default: return nil
    }
  }

  /// How many of all parts are wholly there.
  package static func wholeParts(of done: ByteRanges, part: Int64, size: Int64) -> (done: Int64, count: Int64) {
    let count = max(1, size / part + (size % part == 0 ? 0 : 1))
    let whole = done.ranges.reduce(Int64(0)) { sum, range in
      let end = range.upperBound >= size ? count : range.upperBound / part
      return sum + max(0, end - (range.lowerBound / part + (range.lowerBound % part == 0 ? 0 : 1)))
    }
    return (min(count, whole), count)
  }

  func write(to json: inout JSONWriter) {
    switch self {
    case .ranges(let done, _): Self.write(done, to: &json)
    case .parts(let done, let part, let size):
      Self.write(done, to: &json)
      let parts = Self.wholeParts(of: done, part: part, size: size)
      json.name("parts")
      json.object { json in
        json.member("done", parts.done)
        json.member("count", parts.count)
        json.member("size", part)
      }
    }
  }

  private static func write(_ done: ByteRanges, to json: inout JSONWriter) {
    json.name("ranges")
    json.array { json in
      for range in done.ranges {
        json.array { json in
          json.integer(range.lowerBound)
          json.integer(range.upperBound)
        }
      }
    }
  }
}
