import ReelhaulCodec
import TaskCore

/// The payload as JSON: `{"checkpoint": …, "transfers": {"NAME": {"generation": …, …, "payload": …}}}`.
enum PayloadJSON {
  static let version = 1

  static func encode(_ payload: RunState.Payload) -> [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        if let checkpoint = payload.checkpoint {
          json.name("checkpoint")
          json.raw(checkpoint)
        }
        guard !payload.transfers.isEmpty else { return }
        json.name("transfers")
        json.object { json in
          for (name, transfer) in payload.transfers.sorted(by: { $0.key < $1.key }) {
            json.name(name)
            json.object { json in
              json.member("version", transfer.version)
              json.member("generation", transfer.generation)
              json.member("bytesDone", transfer.bytesDone)
              json.member("bytesTotal", transfer.bytesTotal)
              json.member("stage", transfer.stage)
              json.name("payload")
              json.raw(transfer.payload)
            }
          }
        }
      }
    }
  }

  static func decode(_ envelope: Checkpoint?) throws(DecodingFailure) -> RunState.Payload {
    guard let envelope else { return RunState.Payload() }
    return try JSONReader.read(envelope.payload) { reader throws(DecodingFailure) in
      guard envelope.version == version else {
        throw reader.invalid("this program cannot read a checkpoint of version \(envelope.version)")
      }
      var payload = RunState.Payload()
      try reader.object { reader, name throws(DecodingFailure) in
        switch name {
        case "checkpoint": payload.checkpoint = try reader.raw()
        case "transfers":
          try reader.object { reader, name throws(DecodingFailure) in
            payload.transfers[name.text] = try Checkpoint(from: &reader)
          }
        default: try reader.skip()
        }
      }
      return payload
    }
  }
}

extension Checkpoint {
  fileprivate init(from reader: inout JSONReader) throws(DecodingFailure) {
    var checkpoint = Checkpoint()
    try reader.object { reader, name throws(DecodingFailure) in
      switch name {
      case "version": checkpoint.version = try reader.integer()
      case "generation": checkpoint.generation = try reader.integer()
      case "bytesDone": checkpoint.bytesDone = try reader.integer()
      case "bytesTotal": checkpoint.bytesTotal = try reader.integer()
      case "stage": checkpoint.stage = try reader.string()
      case "payload": checkpoint.payload = try reader.raw()
      default: try reader.skip()
      }
    }
    self = checkpoint
  }
}
