import TaskCore

/// CloudEvents 1.0 in Kafka headers (binary content mode): the common headers of events with the same source and time.
package struct CloudEvent {
  private static let version = Array("1.0".utf8)
  private static let contentType = Array("application/json".utf8)

  private let source: [UInt8]
  private let time: [UInt8]

  /// `source` is a URI reference, such as `/workers/host/4711`.
  package init(source: String, time: Timestamp) {
    self.source = Array(source.utf8)
    self.time = Array(time.description.utf8)
  }

  /// The headers of all messages of a type such as `reelhaul.command.submit`, without their `ce_id`.
  package func headers(type: String) -> [(name: String, value: [UInt8])] {
    [
      ("ce_specversion", Self.version),
      ("ce_type", Array(type.utf8)),
      ("ce_source", source),
      ("ce_time", time),
      ("content-type", Self.contentType),
    ]
  }

  /// The `ce_id` in `headers`, if it is a UUID. Other producers' ids may be any text.
  package static func id(of headers: [(String, [UInt8])]) -> UniqueID? {
    for (name, value) in headers where name == "ce_id" {
      return UniqueID(String(decoding: value, as: UTF8.self))
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

extension TaskEvent.Kind {
  /// The CloudEvents type.
  package var eventType: String { "reelhaul.task.\(rawValue)" }
}

extension TraceContext {
  /// The one that tracing libraries put into the headers of a record; nil if there is none, or none that is valid.
  package init?(of headers: [(String, [UInt8])]) {
    func text(_ name: String) -> String? {
      headers.last { $0.0 == name }.map { String(decoding: $0.1, as: UTF8.self) }
    }
    guard let traceparent = text("traceparent") else { return nil }
    self.init(traceparent: traceparent, tracestate: text("tracestate"))
  }

  /// The headers that pass it on.
  package var headers: [(name: String, value: [UInt8])] {
    [("traceparent", Array(traceparent.utf8))] + (state.map { [("tracestate", Array($0.utf8))] } ?? [])
  }
}
