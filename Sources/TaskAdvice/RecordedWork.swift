import ReelhaulCodec
import TaskCore
import TransferEngine

/// Which parts of a transfer are recorded as safely there, as its checkpoint tells.
package enum RecordedWork: Equatable {
  /// A download: the byte ranges on stable storage.
  case ranges(ByteRanges, size: Int64?)
  /// An upload or copy: how many of `count` parts of `size` bytes its destination has. Which ones, only that knows.
  case parts(done: Int, count: Int, size: Int64)

  /// Nil for other kinds, and for a checkpoint that this program cannot read.
  package init?(_ checkpoint: Checkpoint, of kind: TaskKind) {
    switch kind {
    case .download:
      guard let download = try? DownloadCheckpoint(checkpoint) else { return nil }
      self = .ranges(download.done, size: download.identity.size)
    case .upload, .copy:
      guard let upload = try? UploadCheckpoint(checkpoint), upload.session != nil else { return nil }
      let size = upload.plan.segmentSize
      let count = upload.plan.segments(of: upload.identity.size)
      let done = upload.bytesDone >= upload.identity.size ? count : Int(upload.bytesDone / max(1, size))
      self = .parts(done: min(count, done), count: count, size: size)
    default: return nil
    }
  }

  func write(to json: inout JSONWriter) {
    switch self {
    case .ranges(let done, _):
      json.name("ranges")
      json.array { json in
        for range in done.ranges {
          json.array { json in
            json.integer(range.lowerBound)
            json.integer(range.upperBound)
          }
        }
      }
    case .parts(let done, let count, let size):
      json.name("parts")
      json.object { json in
        json.member("done", done)
        json.member("count", count)
        json.member("size", size)
      }
    }
  }
}
