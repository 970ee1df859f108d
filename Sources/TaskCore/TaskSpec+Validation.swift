extension TaskSpec {
  /// Checks everything that can be known before the task runs.
  public func validate() throws(InvalidTask) {
    try Self.checkName("kind", kind.rawValue, limit: 32)
    try checkURLs()
    if let parameters, parameters.count > Self.parametersLimit {
      throw InvalidTask("parameters", "longer than \(Self.parametersLimit) bytes")
    }
    guard Self.priorities.contains(priority) else {
      throw InvalidTask("priority", "must be from \(Self.priorities.lowerBound) to \(Self.priorities.upperBound)")
    }
    try Self.checkName("queue", queue, limit: 100)
    try checkAfter()
    try checkExpectation()
    for (index, header) in headers.enumerated() { try check(header, before: headers[..<index]) }
    guard headers.count <= 32 else { throw InvalidTask("headers", "more than 32 header fields") }
    try checkRetry()
    if let rate, rate < 1 { throw InvalidTask("rate", "must be at least 1 byte per second") }
    if let credential { try Self.checkName("credential", credential, limit: 100) }
    try checkLabels()
  }

  // MARK: URLs

  private func checkURLs() throws(InvalidTask) {
    switch kind {
    case .download:
      try check("source", source, is: .web)
      try check("destination", destination, is: .storage)
    case .upload:
      try check("source", source, is: .storage)
      try check("destination", destination, is: .web)
    case .copy:
      try check("source", source, is: .any)
      try check("destination", destination, is: .any)
    case .delete:
      try check("source", source, is: .any)
      guard destination == nil else { throw InvalidTask("destination", "a task of kind delete has no destination") }
    default:
      try checkText("source", source)
      try checkText("destination", destination ?? "")
    }
  }

  /// What a handler's own kind names is its own affair, as long as it can be stored and shown.
  private func checkText(_ field: String, _ text: String) throws(InvalidTask) {
    guard text.utf8.count <= Self.urlLimit else { throw InvalidTask(field, InvalidURL.tooLong.description) }
    for (offset, byte) in text.utf8.enumerated() where byte <= 0x20 || byte == 0x7F {
      throw InvalidTask(field, InvalidURL.character(offset: offset).description)
    }
  }

  private enum Place: String {
    case web = "an http:// or https:// URL"
    case storage = "a storage://NAME/PATH URL"
    case any = "an http://, https:// or storage://NAME/PATH URL"
  }

  private func check(_ field: String, _ text: String?, is place: Place) throws(InvalidTask) {
    guard let text, place == .any || (place == .storage) == StorageURL.hasScheme(text.utf8) else {
      throw InvalidTask(field, "a task of kind \(kind.rawValue) needs \(place.rawValue) here")
    }
    do throws(InvalidURL) {
      _ = try ResourceURL(text)
    } catch {
      switch error {
      case .noScheme, .unsupportedScheme: throw InvalidTask(field, "\(error): expected \(place.rawValue)")
      default: throw InvalidTask(field, error.description)
      }
    }
  }

  // MARK: The rest

  private func checkAfter() throws(InvalidTask) {
    guard after.count <= 100 else { throw InvalidTask("after", "more than 100 tasks") }
    guard !after.contains(id) else { throw InvalidTask("after", "a task cannot come after itself") }
    guard Set(after).count == after.count else { throw InvalidTask("after", "a task is named twice") }
  }

  private func checkExpectation() throws(InvalidTask) {
    if let sha256 = expect.sha256, sha256.count != 32 {
      throw InvalidTask("expect.sha256", "must be 64 hexadecimal digits")
    }
    if let md5 = expect.md5, md5.count != 16 { throw InvalidTask("expect.md5", "must be 32 hexadecimal digits") }
    if let bytes = expect.bytes, bytes < 0 { throw InvalidTask("expect.bytes", "must not be negative") }
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

  private func checkRetry() throws(InvalidTask) {
    guard RetryPolicy.attempts.contains(retry.maxAttempts) else {
      throw InvalidTask("maxAttempts", "must be from 1 to \(RetryPolicy.attempts.upperBound)")
    }
    guard retry.intervals.count <= 100, retry.intervals.allSatisfy(RetryPolicy.intervalSeconds.contains) else {
      throw InvalidTask("retryAfter", "must be at most 100 intervals of 0 to 86400 seconds")
    }
  }

  private func checkLabels() throws(InvalidTask) {
    guard labels.count <= 64 else { throw InvalidTask("labels", "more than 64 labels") }
    // Every event has them, and must fit into a message.
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

  /// Whether `name` can be a queue's or a credential's: at most `limit` bytes of letters, digits, `.`, `_` and `-`.
  package static func isName(_ name: String, limit: Int) -> Bool {
    (1...limit).contains(name.utf8.count) && name.utf8.allSatisfy(\.isOfName)
  }

  private static func checkName(_ field: String, _ name: String, limit: Int) throws(InvalidTask) {
    guard isName(name, limit: limit) else {
      throw InvalidTask(field, "must be 1 to \(limit) letters, digits, \".\", \"_\" or \"-\"")
    }
  }
}

extension UInt8 {
  /// One of those that the names of queues, credentials and storage roots consist of: letters, digits, `.`, `_`, `-`.
  var isOfName: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}
