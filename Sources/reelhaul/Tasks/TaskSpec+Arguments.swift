import CommandLineKit
import ReelhaulClient
import ReelhaulCodec
import ReelhaulSystem
import TaskCore

extension TaskSpec {
  /// The download that the command line describes. Single values are checked here; the caller checks the whole.
  init(downloadOf source: String, _ arguments: Arguments) throws {
    try self.init(
      id: arguments[.id].map { try Self.uuid($0, of: .id) } ?? .make(),
      kind: .download, source: source,
      destination: arguments[.destination],
      priority: Int(arguments.integer(.priority) ?? 0),
      queue: arguments[.queue] ?? "default",
      after: arguments.all(.after).map { try Self.uuid($0, of: .after) },
      notBefore: arguments[.notBefore].map(Self.time),
      expect: Expectation(
        sha256: arguments[.sha256].map { try Self.digest($0, bytes: 32, of: .sha256) },
        md5: arguments[.md5].map { try Self.digest($0, bytes: 16, of: .md5) },
        bytes: arguments.bytes(.bytes)),
      ifExists: arguments[.ifExists].flatMap { IfExists(rawValue: $0) } ?? .fail,
      headers: arguments.all(.header).map(Self.header),
      retry: RetryPolicy(
        maxAttempts: Int(arguments.integer(.maxAttempts) ?? 8), intervals: Self.intervals(arguments[.retryAfter])),
      rate: arguments.bytes(.rate),
      credential: arguments[.credential],
      labels: Self.labels(arguments.all(.label)),
      paused: arguments[flag: .paused])
  }

  private static func uuid(_ text: String, of option: OptionSpec) throws(UsageError) -> UniqueID {
    guard let id = UniqueID(text) else {
      throw UsageError("\(option.spelling) must be a UUID such as \(UniqueID.make()), not \"\(text)\"")
    }
    return id
  }

  /// An RFC 3339 time, or a duration from now after a `+`.
  private static func time(_ text: String) throws(UsageError) -> Timestamp {
    if text.hasPrefix("+"), let delay = DurationText.parse(String(text.dropFirst())) {
      return Timestamp(microseconds: Clocks.realtimeMicroseconds() + delay.microseconds)
    }
    do throws(InvalidTimestamp) {
      return try Timestamp(rfc3339: text)
    } catch .leapSecond {
      throw UsageError("\(OptionSpec.notBefore.spelling): \(InvalidTimestamp.leapSecond)")
    } catch {
      throw UsageError(
        "\(OptionSpec.notBefore.spelling) must be a time such as 2026-01-31T20:00:00Z, or from now such as +90s, "
          + "+2h30m or +1d, not \"\(text)\"")
    }
  }

  private static func digest(_ text: String, bytes: Int, of option: OptionSpec) throws(UsageError) -> [UInt8] {
    guard let digest = Hex.decode(text), digest.count == bytes else {
      throw UsageError("\(option.spelling) must be \(bytes * 2) hexadecimal digits, not \"\(text)\"")
    }
    return digest
  }

  private static func header(_ text: String) throws(UsageError) -> HeaderField {
    guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
      throw UsageError("--header must be 'NAME: VALUE', not \"\(text)\"")
    }
    let value = text[text.index(after: colon)...].drop { $0 == " " }
    return HeaderField(name: String(text[..<colon]), value: String(value))
  }

  private static func intervals(_ text: String?) throws(UsageError) -> [Int] {
    guard let text else { return [] }
    let seconds = CommaList.parse(text)?.map { $0.allSatisfy(\.isNumber) ? Int($0) : nil } ?? [nil]
    return try seconds.map { seconds throws(UsageError) in
      guard let seconds else {
        throw UsageError("--retry-after must be seconds such as 5,30,300, not \"\(text)\"")
      }
      return seconds
    }
  }

  private static func labels(_ texts: [String]) throws(UsageError) -> [String: String] {
    var labels: [String: String] = [:]
    for text in texts {
      guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
        throw UsageError("--label must be KEY=VALUE, not \"\(text)\"")
      }
      let name = String(text[..<equals])
      guard labels.updateValue(String(text[text.index(after: equals)...]), forKey: name) == nil else {
        throw UsageError("--label names \(name) twice")
      }
    }
    return labels
  }
}
