import ReelhaulCodec
import TaskCore
import TransferEngine

/// The recorded plan of a deletion.
struct DeletePlan: Hashable, Sendable {
  /// Everything to delete, including what earlier runs have deleted.
  var total: Deletion.Count
  /// The volume on which it is deleted.
  var volume: UniqueID?
  /// See ``DeletePlace``. After a crash the task must not turn to a file of the other spelling.
  var isSpelled: Bool

  init(total: Deletion.Count, place: DeletePlace) {
    self.total = total
    volume = place.volume
    isSpelled = place.isSpelled
  }

  init?(_ checkpoint: Checkpoint?) throws(TaskFailure) {
    guard let checkpoint else { return nil }
    var total = Deletion.Count()
    var volume: UniqueID?
    var isSpelled = false
    do throws(DecodingFailure) {
      try JSONReader.read(checkpoint.payload) { reader throws(DecodingFailure) in
        try reader.object { reader, name throws(DecodingFailure) in
          switch name {
          case "files": total.files = try reader.integer(0...Int64.max)
          case "bytes": total.bytes = try reader.integer(0...Int64.max)
          case "volume": volume = try UniqueID(reader.string())
          case "spelled": isSpelled = try reader.bool()
          default: try reader.skip()
          }
        }
      }
    } catch {
      throw TaskFailure(
        code: .checkpointUnreadable, message: "this worker cannot read the checkpoint: \(error)", class: .wait)
    }
    self.total = total
    self.volume = volume
    self.isSpelled = isSpelled
  }

  /// How much is deleted if `left` still exists. It is never negative, because somebody may have added files since
  /// then.
  func deleted(leaving left: Deletion.Count) -> Deletion.Count {
    let gone = total - left
    return Deletion.Count(files: max(0, gone.files), bytes: max(0, gone.bytes))
  }

  var envelope: Checkpoint {
    let payload = JSONWriter.write { json in
      json.object { json in
        json.member("files", total.files)
        json.member("bytes", total.bytes)
        if let volume { json.member("volume", "\(volume)") }
        json.member("spelled", isSpelled)
      }
    }
    return Checkpoint(bytesTotal: total.bytes, payload: payload)
  }
}
