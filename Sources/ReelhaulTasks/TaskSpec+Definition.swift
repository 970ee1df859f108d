import FoundationEssentials
import ReelhaulCodec
import ReelhaulMessages
import TaskCore

extension TaskSpec {
  /// A task of a defined kind, checked: its parameters are valid and short enough.
  ///
  /// ```swift
  /// var task = try TaskSpec(Thumbnails.self, .init(video: "storage://default/a.mp4", count: 12))
  /// task.priority = 10
  /// ```
  ///
  /// - Parameters:
  ///   - id: Makes the submit idempotent. A new id by default.
  ///   - source: The URL that the task reads, if any. The limits of its host or storage apply to the task, and workers
  ///     without its `storage://` root do not claim the task.
  ///   - destination: The same for the URL that the task writes.
  ///
  /// Throws ``InvalidTask``.
  public init<Definition: TaskDefinition>(
    _ definition: Definition.Type, _ parameters: Definition.Parameters, id: UniqueID? = nil, source: String = "",
    destination: String? = nil
  ) throws(InvalidTask) {
    let json: [UInt8]
    do {
      try Definition.validate(parameters)
      json = try JSONValue.encode(parameters)
    } catch {
      throw InvalidTask(parameters: error)
    }
    guard json != Array("null".utf8) else {
      throw InvalidTask("parameters", "they are null, which means none, so that the handler would get {}")
    }
    self.init(
      id: id ?? UniqueID(milliseconds: UInt64(Date().timeIntervalSince1970 * 1000)),
      kind: TaskKind(rawValue: Definition.kind), source: source, destination: destination, parameters: json)
    try validate()
  }

  /// Decodes the parameters for `definition`. Throws ``InvalidTask``, which names the field that does not fit.
  public func parameters<Definition: TaskDefinition>(
    of definition: Definition.Type
  ) throws(InvalidTask) -> Definition.Parameters {
    let parameters: Definition.Parameters
    do {
      parameters = try JSONValue.decode(Definition.Parameters.self, from: self.parameters ?? Array("{}".utf8))
      try Definition.validate(parameters)
    } catch {
      throw InvalidTask(parameters: error)
    }
    return parameters
  }

  /// The command that submits this task, for any Kafka client: the value of a record of the topic `commands`, whose key
  /// is the task's id as text.
  public var submitMessage: [UInt8] { CommandJSON.encode(.submit(self)) }
}

extension InvalidTask {
  /// Why the parameters are wrong, with the place that the error names.
  fileprivate init(parameters error: any Error) {
    let (place, message) =
      switch error {
      case let error as InvalidTask: (error.field, error.message)
      case let error as InvalidJSON: (error.path, error.reason)
      default: ("", "\(error)")
      }
    self.init("parameters\(place.isEmpty || place.hasPrefix("[") ? "" : ".")\(place)", message)
  }
}
