import Foundation

/// A task to submit. What is nil is as the fleet has it by default.
///
/// The fields mean what the options of `reelhaul download` and its kin mean; the server checks them.
public struct NewTask: Encodable, Sendable {
  /// What is known of the file before it is fetched. A file that differs is never published.
  public struct Expectation: Encodable, Sendable {
    /// 64 hexadecimal digits.
    public var sha256: String?
    /// 32 hexadecimal digits.
    public var md5: String?
    /// The size in bytes.
    public var bytes: Int64?

    public init(sha256: String? = nil, md5: String? = nil, bytes: Int64? = nil) {
      self.sha256 = sha256
      self.md5 = md5
      self.bytes = bytes
    }
  }

  /// What becomes of a file that is already at the destination.
  public enum IfExists: String, Encodable, Sendable {
    case fail, skip, replace
  }

  /// Makes the submit idempotent: the same id is the same task.
  public var id: UUID
  /// `download`, `upload`, `copy`, `delete`, or the kind of a handler of your own.
  public var kind: String
  /// The URL that the task reads, or for `delete` what it deletes.
  public var source: String?
  /// The URL that the task writes.
  public var destination: String?
  /// -1000…1000; higher ones run first.
  public var priority: Int?
  public var queue: String?
  /// The tasks that must have succeeded before this one starts.
  public var after: [UUID]?
  /// It does not start before this time.
  public var notBefore: Date?
  public var expect: Expectation?
  public var ifExists: IfExists?
  /// The name of a credential, which the worker has.
  public var credential: String?
  public var maxAttempts: Int?
  /// Bytes a second.
  public var rate: Int64?
  /// How many connections it may use at once.
  public var connections: Int?
  public var labels: [String: String]?
  /// It is paused until somebody resumes it.
  public var paused: Bool?
  /// What the kind's handler is given: at most 64 KiB.
  public var parameters: JSONValue?

  public init(id: UUID = UUID(), kind: String, source: String? = nil, destination: String? = nil) {
    self.id = id
    self.kind = kind
    self.source = source
    self.destination = destination
  }

  /// A task of a kind of your own, with parameters of any type that can be encoded.
  public init(id: UUID = UUID(), kind: String, parameters: some Encodable) throws {
    self.init(id: id, kind: kind)
    self.parameters = try FleetClient.decoder().decode(JSONValue.self, from: FleetClient.encode(parameters))
  }
}
