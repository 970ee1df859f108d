import ReelhaulCodec
import TaskCore
import TransferEngine

/// Which parts of a transfer are recorded as safely there, as its checkpoint tells.
package enum RecordedWork: Equatable {
  /// A download, or a copy to a storage: the byte ranges on stable storage.
  case ranges(ByteRanges, size: Int64?)
  /// An upload, or a copy to a server, of `size` bytes: what its destination had confirmed, and the parts in which it is sent.
  case parts(ByteRanges, UploadPlan, size: Int64)

  /// Nil for other kinds, and for a checkpoint that this program cannot read.
  package init?(_ checkpoint: Checkpoint, of kind: TaskKind) {
    let (mayFetch, maySend) = ([.download, .copy].contains(kind), [.upload, .copy].contains(kind))
    if maySend, let upload = try? UploadCheckpoint(checkpoint), upload.session != nil {
      self = .parts(upload.done, upload.plan, size: upload.identity.size)
    } else if mayFetch, let download = try? DownloadCheckpoint(checkpoint) {
      self = .ranges(download.done, size: download.identity.size)
    } else {
      return nil
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
