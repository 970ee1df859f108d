import ReelhaulCodec
import TaskCore
import TransferEngine

/// Which parts of a transfer are recorded as safely there, as its checkpoint tells.
package enum RecordedWork: Equatable {
  /// A download: the byte ranges on stable storage.
  case ranges(ByteRanges, size: Int64?)
  /// An upload or copy of `size` bytes: what its destination had confirmed, and the parts in which it is sent.
  case parts(ByteRanges, UploadPlan, size: Int64)

  /// Nil for other kinds, and for a checkpoint that this program cannot read.
  package init?(_ checkpoint: Checkpoint, of kind: TaskKind) {
    switch kind {
    case .download:
      guard let download = try? DownloadCheckpoint(checkpoint) else { return nil }
      self = .ranges(download.done, size: download.identity.size)
    case .upload, .copy:
      guard let upload = try? UploadCheckpoint(checkpoint), upload.session != nil else { return nil }
      self = .parts(upload.done, upload.plan, size: upload.identity.size)
    default: return nil
    }
  }

  func write(to json: inout JSONWriter) {
    switch self {
    case .ranges(let done, _): Self.write(done, to: &json)
    case .parts(let done, let plan, let size):
      Self.write(done, to: &json)
      json.name("parts")
      json.object { json in
        json.member("done", plan.segments(in: done, of: size))
        json.member("count", plan.segments(of: size))
        json.member("size", plan.segmentSize)
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
