/// A kind of task: what its producers and its workers agree on.
///
/// ```swift
/// struct Thumbnails: TaskDefinition {
///   struct Parameters: Codable, Sendable { var video: String, count: Int }
///   static let kind = "thumbnails"
/// }
/// ```
///
/// A service that only submits such tasks needs nothing else; the worker's `TaskHandler` is a definition that can run.
public protocol TaskDefinition: Sendable {
  /// What a task of this kind needs to know; `parameters` on the wire, at most 64 KiB of JSON. A new field must be
  /// optional: tasks submitted before it was added have no value for it.
  associatedtype Parameters: Codable & Sendable
  /// What a task that succeeded gives back; `output` on the wire, at most 64 KiB of JSON.
  associatedtype Output: Codable & Sendable = NoOutput

  /// The kind's name in messages and in the database: 1 to 32 letters, digits, `.`, `_` or `-`. It is written out,
  /// because renaming a Swift type must not orphan the tasks that wait.
  static var kind: String { get }
  /// Former names of the kind. Tasks submitted under one of them are carried out, too.
  static var aliases: [String] { get }
  /// Checks what the types cannot say. Producers call it before they submit, workers before they run. Throws any error;
  /// its description becomes the reason.
  static func validate(_ parameters: Parameters) throws
}

extension TaskDefinition {
  public static var aliases: [String] { [] }
  public static func validate(_ parameters: Parameters) throws {}
}

/// The output of a kind that gives nothing back: `null` in the task document.
public struct NoOutput: Codable, Hashable, Sendable {
  public init() {}

  public init(from decoder: any Decoder) throws {}

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encodeNil()
  }
}
