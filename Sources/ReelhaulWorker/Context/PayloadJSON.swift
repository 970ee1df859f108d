import ReelhaulCodec
import TaskCore

/// The payload as JSON: `{"checkpoint": …, "transfers": {"NAME": {"source": …, "generation": …, …, "payload": …}}}`.
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
              if let source = transfer.source { json.member("source", source) }
              let transfer = transfer.checkpoint
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
            payload.transfers[name.text] = try RunState.Payload.Transfer(from: &reader)
          }
        default: try reader.skip()
        }
      }
      return payload
    }
  }
}

extension RunState.Payload.Transfer {
  fileprivate init(from reader: inout JSONReader) throws(DecodingFailure) {
    var transfer = Self()
    try reader.object { reader, name throws(DecodingFailure) in
      switch name {
      case "source": transfer.source = try reader.integer()
      case "version": transfer.checkpoint.version = try reader.integer()
      case "generation": transfer.checkpoint.generation = try reader.integer()
      case "bytesDone": transfer.checkpoint.bytesDone = try reader.integer()
      case "bytesTotal": transfer.checkpoint.bytesTotal = try reader.integer()
      case "stage": transfer.checkpoint.stage = try reader.string()
      case "payload": transfer.checkpoint.payload = try reader.raw()
      default: try reader.skip()
      }
    }
    self = transfer
  }
}
