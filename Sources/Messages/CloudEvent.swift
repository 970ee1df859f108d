import TaskCore

/// CloudEvents 1.0 in Kafka headers (binary content mode).
package enum CloudEvent {
  /// The headers of a message of `type`, such as `reelhaul.command.submit`, from `source`, such as `/workers/host/4711`.
  package static func headers(
    id: UUID, type: String, source: String, time: Timestamp
  ) -> [(String, [UInt8])] {
    [
      ("ce_specversion", Array("1.0".utf8)),
      ("ce_id", Array(id.description.utf8)),
      ("ce_type", Array(type.utf8)),
      ("ce_source", Array(source.utf8)),
      ("ce_time", Array(time.description.utf8)),
      ("content-type", Array("application/json".utf8)),
    ]
  }

  /// The `ce_id` among `headers`, where there is one and it is a UUID; others' ids may be any text.
  package static func id(of headers: [(String, [UInt8])]) -> UUID? {
    for (name, value) in headers where name == "ce_id" {
      return UUID(String(decoding: value, as: UTF8.self))
    }
    return nil
  }
}

extension Command {
  /// The CloudEvents type.
  package var eventType: String {
    switch self {
    case .submit: "reelhaul.command.submit"
    case .control(let control): "reelhaul.command.\(control.action.name)"
    }
  }
}

extension TaskEvent {
  /// The CloudEvents type.
  package var eventType: String { "reelhaul.task.\(kind.rawValue)" }
}
