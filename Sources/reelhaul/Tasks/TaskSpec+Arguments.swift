import CommandLineKit
import ReelhaulClient
import ReelhaulCodec
import ReelhaulSystem
import TaskCore
import WorkerOptions

extension TaskSpec {
  /// The task that the command line describes, with an id of its own where none is given. Single values are checked
  /// here; the caller checks the whole. `named`: the tasks that values name which are no ids.
  init(kind: TaskKind, source: String, _ arguments: Arguments, named: [String: UniqueID] = [:]) throws {
    self.init(id: .make(), kind: kind, source: source)
    for field in TaskField.all {
      guard let option = OptionSpec(field) else { continue }
      try field.value.take(option, from: arguments, named: named, into: &self)
    }
  }

  /// The same; asks the store which tasks are meant by the ends of their ids.
  static func of(_ kind: TaskKind, source: String, _ context: Context) async throws -> TaskSpec {
    var endings: [(String, TaskID)] = []
    for field in TaskField.all {
      guard case .ids = field.value, let option = OptionSpec(field) else { continue }
      for text in context.arguments.all(option) {
        if let name = TaskID(text), case .ending = name { endings.append((text, name)) }
      }
    }
    guard !endings.isEmpty else { return try TaskSpec(kind: kind, source: source, context.arguments) }
    let ids = try await Fleet.withStore(context) { [names = endings.map(\.1)] in try await TaskLookup($0).ids(names) }
    let named = Dictionary(zip(endings.map(\.0), ids)) { $1 }
    return try TaskSpec(kind: kind, source: source, context.arguments, named: named)
  }
}

extension TaskField.Value {
  /// Sets the field to what the command line gives, or leaves it as it is.
  fileprivate func take(
    _ option: OptionSpec, from arguments: Arguments, named: [String: UniqueID], into spec: inout TaskSpec
  ) throws(UsageError) {
    guard option.takesValue ? arguments.given(option) != nil : arguments[flag: option] else { return }
    let text = arguments[option] ?? ""
    switch self {
    case .id(let place): place.set(&spec, try Self.uuid(text, of: option))
    case .ids(let place):
      place.set(
        &spec,
        try arguments.all(option).map { text throws(UsageError) in
          if let id = named[text] { return id }
          return try Self.uuid(text, of: option)
        })
    case .kind(let place): place.set(&spec, TaskKind(rawValue: text))
    case .text(let place, _), .name(let place, _): place.set(&spec, text)
    case .optionalText(let place, _), .optionalName(let place, _): place.set(&spec, text)
    case .integer(let place, _): place.set(&spec, arguments.integer(option).map { Int($0) } ?? 0)
    case .bytes(let place, _): place.set(&spec, arguments.bytes(option))
    case .time(let place): place.set(&spec, try Self.time(text, of: option))
    case .digest(let place, let count): place.set(&spec, try Self.digest(text, bytes: count, of: option))
    case .ifExists(let place): place.set(&spec, IfExists(rawValue: text) ?? .fail)
    case .headers(let place):
      place.set(&spec, try arguments.all(option).map { text throws(UsageError) in try Self.header(text, of: option) })
    case .seconds(let place): place.set(&spec, try Self.intervals(text, of: option))
    case .labels(let place): place.set(&spec, try arguments.pairs(option))
    case .flag(let place): place.set(&spec, true)
    case .json(let place, let limit): place.set(&spec, try Self.json(text, limit: limit, of: option))
    }
  }

  /// A JSON value, or after an `@` the name of a file of one.
  private static func json(_ text: String, limit: Int, of option: OptionSpec) throws(UsageError) -> [UInt8] {
    var (json, origin) = (Array(text.utf8), option.spelling)
    if text.hasPrefix("@") {
      let path = String(text.dropFirst())
      origin += " \(path)"
      do throws(SystemError) {
        // White space between tokens does not count, so a file may be longer than its value.
        json = try TextFile.bytes(of: path, limit: 16 * limit)
      } catch {
        throw UsageError("\(option.spelling): \(error)", hint: "Write the name of a file after @.")
      }
    }
    do throws(DecodingFailure) {
      return try JSONReader.read(json, limit: .max) { reader throws(DecodingFailure) in try reader.raw() }
    } catch {
      throw UsageError("\(origin) must be JSON: \(error)")
    }
  }

  private static func uuid(_ text: String, of option: OptionSpec) throws(UsageError) -> UniqueID {
    guard let id = UniqueID(text) else {
      throw UsageError("\(option.spelling) must be a UUID such as \(UniqueID.make()), not \"\(text)\"")
    }
    return id
  }

  /// An RFC 3339 time, or a duration from now after a `+`.
  private static func time(_ text: String, of option: OptionSpec) throws(UsageError) -> Timestamp {
    if text.hasPrefix("+"), let delay = DurationText.parse(String(text.dropFirst())) {
      return Timestamp(microseconds: Clocks.realtimeMicroseconds() + delay.microseconds)
    }
    do throws(InvalidTimestamp) {
      return try Timestamp(rfc3339: text)
    } catch .leapSecond {
      throw UsageError("\(option.spelling): \(InvalidTimestamp.leapSecond)")
    } catch {
      throw UsageError(
        "\(option.spelling) must be a time such as 2026-01-31T20:00:00Z, or from now such as +90s, "
          + "+2h30m or +1d, not \"\(text)\"")
    }
  }

  private static func digest(_ text: String, bytes: Int, of option: OptionSpec) throws(UsageError) -> [UInt8] {
    guard let digest = Hex.decode(text), digest.count == bytes else {
      throw UsageError("\(option.spelling) must be \(bytes * 2) hexadecimal digits, not \"\(text)\"")
    }
    return digest
  }

  private static func header(_ text: String, of option: OptionSpec) throws(UsageError) -> HeaderField {
    guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else {
      throw UsageError("\(option.spelling) must be 'NAME: VALUE', not \"\(text)\"")
    }
    let value = text[text.index(after: colon)...].drop { $0 == " " }
    return HeaderField(name: String(text[..<colon]), value: String(value))
  }

  private static func intervals(_ text: String, of option: OptionSpec) throws(UsageError) -> [Int] {
    let seconds = CommaList.parse(text)?.map { $0.allSatisfy(\.isNumber) ? Int($0) : nil } ?? [nil]
    return try seconds.map { seconds throws(UsageError) in
      guard let seconds else {
        throw UsageError("\(option.spelling) must be seconds such as 5,30,300, not \"\(text)\"")
      }
      return seconds
    }
  }
}
