import ReelhaulCodec
import TaskCore

/// A progress sample as JSON, the value of a record of the `progress` topic: bytes, bytes per second, seconds.
package enum ProgressJSON {
  package static func encode(_ sample: ProgressSample, at: Timestamp) -> [UInt8] {
    JSONWriter.write(capacity: 256) { json in
      json.object { json in
        json.member("taskId", sample.taskID)
        json.member("epoch", sample.epoch)
        json.member("bytesDone", sample.bytesDone)
        json.member("bytesTotal", orNull: sample.bytesTotal)
        json.member("rate", sample.rate)
        json.member("eta", orNull: sample.eta)
        json.member("at", at)
      }
    }
  }

  package static func decode(_ bytes: [UInt8]) throws(DecodingFailure) -> (sample: ProgressSample, at: Timestamp) {
    try JSONReader.read(bytes) { reader throws(DecodingFailure) in
      var taskID: UniqueID?
      var sample = ProgressSample(
        taskID: UniqueID(high: 0, low: 0), epoch: 0, bytesDone: 0, bytesTotal: nil, rate: 0)
      var at = Timestamp(microseconds: 0)
      try reader.object { reader, name throws(DecodingFailure) in
        switch name {
        case "taskId": taskID = try reader.uuid()
        case "epoch": sample.epoch = try reader.integer()
        case "bytesDone": sample.bytesDone = try reader.integer(0...Int64.max)
        case "bytesTotal": sample.bytesTotal = try reader.integer(0...Int64.max)
        case "rate": sample.rate = try reader.integer(0...Int64.max)
        case "at": at = try reader.timestamp()
        default: try reader.skip()
        }
      }
      guard let taskID else { throw reader.missing("taskId") }
      sample.taskID = taskID
      return (sample, at)
    }
  }
}
