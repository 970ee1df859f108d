/// The definition of a kind of task, which its producers and its workers share.
///
/// ```swift
/// struct Thumbnails: TaskDefinition {
///   struct Parameters: Codable, Sendable { var video: String, count: Int }
///   static let kind = "thumbnails"
/// }
/// ```
///
/// A service that only submits such tasks needs nothing else. The worker's `TaskHandler` is a definition that can also
/// run.
public protocol TaskDefinition: Sendable {
  /// The input of a task of this kind: the field `parameters` of a task, at most 64 KiB of JSON. A field that you add
  /// later must be optional, because tasks that were submitted before have no value for it.
  associatedtype Parameters: Codable & Sendable
  /// The result of a succeeded task: the field `output` of a task document, at most 64 KiB of JSON.
  associatedtype Output: Codable & Sendable = NoOutput

  /// The kind's name in messages and in the database: 1 to 32 letters, digits, `.`, `_` or `-`. It is written out,
  /// because renaming a Swift type must not orphan the tasks that wait.
  static var kind: String { get }
  /// Former names of the kind. Tasks that were submitted with one of them are carried out too.
  static var aliases: [String] { get }
  /// Checks rules that the types cannot express. Producers call it before they submit a task, workers before they run
  /// it. It may throw any error, whose description becomes the reason; an `InvalidTask` also names the field of the
  /// parameters.
  static func validate(_ parameters: Parameters) throws
}

extension TaskDefinition {
  public static var aliases: [String] { [] }
  public static func validate(_ parameters: Parameters) throws {}
}

/// The output of a kind that has no result: `null` in the task document.
public struct NoOutput: Codable, Hashable, Sendable {
  public init() {}

  public init(from decoder: any Decoder) throws {}

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encodeNil()
  }
}
