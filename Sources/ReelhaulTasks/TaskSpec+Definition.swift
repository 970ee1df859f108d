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
  ///   - id: makes the submit idempotent; a new one by default.
  ///   - source: a URL that the task reads, if any: limits of hosts and storages follow it, and workers that lack a
  ///     `storage://` root do not claim the task.
  ///   - destination: the same for a URL that the task writes.
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
      throw InvalidTask("parameters", "\(error)")
    }
    self.init(
      id: id ?? UniqueID(milliseconds: UInt64(Date().timeIntervalSince1970 * 1000)),
      kind: TaskKind(rawValue: Definition.kind), source: source, destination: destination, parameters: json)
    try validate()
  }

  /// The parameters as `definition` has them. Throws ``InvalidTask`` naming the place that does not fit.
  public func parameters<Definition: TaskDefinition>(
    of definition: Definition.Type
  ) throws(InvalidTask) -> Definition.Parameters {
    let parameters: Definition.Parameters
    do throws(InvalidJSON) {
      parameters = try JSONValue.decode(Definition.Parameters.self, from: self.parameters ?? Array("{}".utf8))
    } catch {
      throw InvalidTask(error.path.isEmpty ? "parameters" : "parameters.\(error.path)", error.reason)
    }
    do {
      try Definition.validate(parameters)
    } catch {
      throw InvalidTask("parameters", "\(error)")
    }
    return parameters
  }

  /// The command that submits this task, for any Kafka client: the value of a record of the topic `commands`, whose key
  /// is the task's id as text.
  public var submitMessage: [UInt8] { CommandJSON.encode(.submit(self)) }
}
