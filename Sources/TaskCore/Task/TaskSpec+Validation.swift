extension TaskSpec {
  /// Checks everything that can be known before the task runs.
  public func validate() throws(InvalidTask) {
    try withUnsafePointer(to: self) { spec throws(InvalidTask) in
      for step in Self.steps {
        switch step {
        case .value(let index, let value):
          guard let complaint = value.complaint(about: spec) else { continue }
          throw InvalidTask(TaskField.all[index].path, complaint)
        case .own(let check): try check(self)
        }
      }
    }
  }

  /// One check. The checks run in the order of the fields: first that of a field's value type, then the field's own.
  private enum Check {
    case value(field: Int, TaskField.Value)
    case own(@Sendable (TaskSpec) throws(InvalidTask) -> Void)
  }

  private static let steps: [Check] = {
    var steps: [Check] = []
    for (index, field) in TaskField.all.enumerated() {
      if field.value.hasComplaints { steps.append(.value(field: index, field.value)) }
      if let check = field.check { steps.append(.own(check)) }
    }
    return steps
  }()

  /// Checks a transfer that a handler makes. Its destination is already checked.
  package func validateTransfer() throws(InvalidTask) {
    var transfer = self
    transfer.destination = "storage://default/checked"
    try transfer.validate()
  }

  // MARK: URLs

  func checkURLs() throws(InvalidTask) {
    switch kind {
    case .download:
      _ = try checkSource([.web, .s3])
      _ = try checkDestination(.storage)
    case .upload:
      _ = try checkSource(.storage)
      _ = try checkDestination([.web, .s3, .tus])
    case .copy:
      let source = try checkSource([.web, .s3, .storage])
      // Two stores may have objects of one name: then its parameters tell.
      let isOfTwoStores = parameters != nil && Places.of(self.source) == .s3
      guard try checkDestination([.web, .s3, .storage, .tus]) != source || isOfTwoStores else {
        throw InvalidTask("destination", "it is the source itself")
      }
    case .delete:
      _ = try check("source", source, is: [.web, .s3, .storage, .tus])
      guard destination == nil else { throw InvalidTask("destination", "a delete must not have one") }
    default:
      try checkText("source", source)
      try checkText("destination", destination ?? "")
    }
  }

  /// What is transferred is one object: only a delete may name all objects below a key.
  private func checkSource(_ places: Places) throws(InvalidTask) -> ResourceURL {
    let url = try check("source", source, is: places)
    if case .s3(let object) = url, object.isFolder { throw InvalidTask("source", Self.folder) }
    return url
  }

  private func checkDestination(_ places: Places) throws(InvalidTask) -> ResourceURL {
    let url = try check("destination", destination, is: places)
    guard case .s3(let object) = url else { return url }
    guard !object.isFolder else { throw InvalidTask("destination", Self.folder) }
    guard object.versionID == nil else { throw InvalidTask("destination", "the store names the version it makes") }
    return url
  }

  private static let folder = "its key ends with \"/\": add the object's name"

  /// A kind of your own decides what its texts mean. They must only be fit for storing and showing, and name the storage
  /// that they need.
  private func checkText(_ field: String, _ text: String) throws(InvalidTask) {
    guard text.utf8.count <= Self.urlLimit else { throw InvalidTask(field, InvalidURL.tooLong.description) }
    for (offset, byte) in text.utf8.enumerated() where byte <= 0x20 || byte == 0x7F {
      throw InvalidTask(field, InvalidURL.character(offset: offset).description)
    }
    guard Places.of(text) != .storage || StorageURL.root(of: text) != nil else {
      throw InvalidTask(field, "it names no storage: write storage://NAME/ and what follows")
    }
  }

  /// Sorts of URLs. A text with an unknown scheme, or without one, counts as `web`.
  private struct Places: OptionSet, CustomStringConvertible {
    let rawValue: Int
    static let web = Places(rawValue: 1)
    static let s3 = Places(rawValue: 2)
    static let storage = Places(rawValue: 4)
    static let tus = Places(rawValue: 8)

    /// The sort of a text.
    static func of(_ text: String) -> Places {
      if StorageURL.hasScheme(text.utf8) { return .storage }
      if S3URL.hasScheme(text.utf8) { return .s3 }
      return TusURL.hasScheme(text.utf8) ? .tus : .web
    }

    var description: String {
      let all: [(Places, [String])] = [
        (.web, ["http://", "https://"]), (.s3, ["s3://BUCKET/KEY"]), (.storage, ["storage://NAME/PATH"]),
        (.tus, ["tus+http://", "tus+https://"]),
      ]
      let words = all.filter { contains($0.0) }.flatMap(\.1)
      let article = words.first?.hasPrefix("storage") == true ? "a" : "an"
      guard words.count > 1 else { return "\(article) \(words.joined()) URL" }
      return "\(article) \(words.dropLast().joined(separator: ", ")) or \(words[words.count - 1]) URL"
    }
  }

  private func check(_ field: String, _ text: String?, is places: Places) throws(InvalidTask) -> ResourceURL {
    guard let text, places.contains(.of(text)) else {
      throw InvalidTask(field, "a task of kind \(kind.rawValue) needs \(places) here")
    }
    do throws(InvalidURL) {
      return try ResourceURL(text)
    } catch {
      switch error {
      case .noScheme, .unsupportedScheme: throw InvalidTask(field, "\(error): expected \(places)")
      default: throw InvalidTask(field, error.description)
      }
    }
  }

  // MARK: The rest

  func checkNotify() throws(InvalidTask) {
    guard let notify else { return }
    guard Places.of(notify) == .web else { throw InvalidTask("notify", "expected an http:// or https:// URL") }
    do throws(InvalidURL) {
      _ = try ResourceURL(notify)
    } catch {
      throw InvalidTask("notify", error.description)
    }
  }

  func checkTrace() throws(InvalidTask) {
    guard traceparent.map({ TraceContext(traceparent: $0) != nil }) ?? true else {
      throw InvalidTask(
        "traceparent",
        "expected one of W3C Trace Context, such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    }
    guard tracestate.map(TraceContext.isState) ?? true else {
      throw InvalidTask("tracestate", "expected visible ASCII")
    }
  }

  func checkAfter() throws(InvalidTask) {
    guard after.count <= 100 else { throw InvalidTask("after", "more than 100 tasks") }
    guard !after.contains(id) else { throw InvalidTask("after", "a task cannot come after itself") }
    guard Set(after).count == after.count else { throw InvalidTask("after", "a task is named twice") }
  }

  func checkHeaders() throws(InvalidTask) {
    for (index, header) in headers.enumerated() { try check(header, before: headers[..<index]) }
    guard headers.count <= 32 else { throw InvalidTask("headers", "more than 32 header fields") }
  }

  private func check(_ header: HeaderField, before others: ArraySlice<HeaderField>) throws(InvalidTask) {
    guard header.isToken else { throw InvalidTask("headers", "a field's name is empty or not a token of HTTP") }
    guard !header.isSecret else {
      throw InvalidTask("headers", "\(header.name) is a secret: name one of the workers' credentials instead")
    }
    guard !header.isReserved else { throw InvalidTask("headers", "\(header.name) is set by the transfer itself") }
    guard header.hasSendableValue else {
      throw InvalidTask("headers", "the value of \(header.name) is too long or has control characters")
    }
    guard !others.contains(where: { $0.name.lowercased() == header.name.lowercased() }) else {
      throw InvalidTask("headers", "\(header.name) appears twice")
    }
  }

  func checkIntervals() throws(InvalidTask) {
    guard retry.intervals.count <= 100, retry.intervals.allSatisfy(RetryPolicy.intervalSeconds.contains) else {
      throw InvalidTask("retryAfter", "must be at most 100 intervals of 0 to 86400 seconds")
    }
  }

  func checkLabels() throws(InvalidTask) {
    guard labels.count <= 64 else { throw InvalidTask("labels", "more than 64 labels") }
    // Every event contains the labels, and must fit into a message.
    guard labels.reduce(0, { $0 + $1.key.utf8.count + $1.value.utf8.count }) <= 1 << 16 else {
      throw InvalidTask("labels", "longer than \(1 << 16) bytes together")
    }
    for (name, value) in labels {
      guard (1...100).contains(name.utf8.count), name.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
        throw InvalidTask("labels", "a label's name must be 1 to 100 bytes without spaces")
      }
      guard value.utf8.count <= 4096, !value.utf8.contains(0) else {
        throw InvalidTask("labels", "the value of a label is longer than 4096 bytes or contains NUL")
      }
    }
  }

  /// Whether `name` can be the name of a queue or a credential: at most `limit` letters, digits, `.`, `_` and `-`.
  package static func isName(_ name: String, limit: Int) -> Bool {
    (1...limit).contains(name.utf8.count) && name.utf8.allSatisfy(\.isOfName)
  }
}

extension TaskField.Value {
  /// Describes what is wrong with the value according to its type; nil if nothing is wrong.
  fileprivate func complaint(about spec: UnsafePointer<TaskSpec>) -> String? {
    switch self {
    case .kind(let place): Self.complaint(aboutName: place(spec).pointee.rawValue, limit: 32)
    case .name(let place, let limit): Self.complaint(aboutName: place(spec).pointee, limit: limit)
    case .optionalName(let place, let limit):
      place(spec).pointee.flatMap { Self.complaint(aboutName: $0, limit: limit) }
    case .integer(let place, let range):
      range.contains(place(spec).pointee) ? nil : "must be from \(range.lowerBound) to \(range.upperBound)"
    case .bytes(let place, let least): (place(spec).pointee ?? least) < least ? "must be at least \(least)" : nil
    case .digest(let place, let count):
      (place(spec).pointee?.count ?? count) == count ? nil : "must be \(2 * count) hexadecimal digits"
    case .json(let place, let limit): place(spec).pointee.flatMap { Self.complaint(aboutJSON: $0, limit: limit) }
    // These fields have checks of their own.
    case .id, .ids, .text, .optionalText, .time, .ifExists, .headers, .seconds, .labels, .flag: nil
    }
  }

  /// Whether ``complaint(about:)`` checks values of this type.
  fileprivate var hasComplaints: Bool {
    switch self {
    case .kind, .name, .optionalName, .integer, .bytes, .digest, .json: true
    case .id, .ids, .text, .optionalText, .time, .ifExists, .headers, .seconds, .labels, .flag: false
    }
  }

  private static func complaint(aboutJSON json: [UInt8], limit: Int) -> String? {
    guard (1...limit).contains(json.count) else { return "must be a JSON value of at most \(limit) bytes" }
    return TaskSpec.hasNUL(json: json) ? "contains \\u0000, which the store cannot keep" : nil
  }

  private static func complaint(aboutName name: String, limit: Int) -> String? {
    TaskSpec.isName(name, limit: limit) ? nil : "must be 1 to \(limit) letters, digits, \".\", \"_\" or \"-\""
  }
}

extension TaskSpec {
  /// Whether a text in `json` has the character NUL. PostgreSQL would store it, but fail each time it reads a member.
  package static func hasNUL(json: [UInt8]) -> Bool {
    var rest = json[...]
    while let backslash = rest.firstIndex(of: UInt8(ascii: "\\")) {
      rest = rest[(backslash + 1)...]
      if rest.starts(with: "u0000".utf8) { return true }
      rest = rest.dropFirst()
    }
    return false
  }
}

extension UInt8 {
  /// Whether names of queues, credentials and storage roots may contain it: letters, digits, `.`, `_` and `-`.
  var isOfName: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}

/// Why a task cannot be accepted.
public struct InvalidTask: Error, Hashable, Sendable {
  /// The field's name in JSON: `source`, `expect.sha256` …
  public var field: String
  /// What is wrong with it, for people. It never repeats a URL or a header's value.
  public var message: String

  public init(_ field: String, _ message: String) {
    self.field = field
    self.message = message
  }
}

extension InvalidTask: CustomStringConvertible {
  public var description: String { "\(field): \(message)" }
}
