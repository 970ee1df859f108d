import ReelhaulCodec
import ReelhaulSystem
import TaskCore

extension S3Error {
  /// The failure of a task whose request was answered so.
  ///
  /// - Parameters:
  ///   - place: What the request was for, in a form for people: `s3://bucket/key`.
  ///   - now: The worker's time in seconds since 1970, when the answer came.
  package func failure(_ place: String, now: Int64) -> TaskFailure {
    TaskFailure(
      code: taskCode, message: "\(place): \(sentence)\(elsewhere)\(skew(now: now))", class: taskClass,
      retryAfter: retryAfter.flatMap { TaskFailure.retryAfter($0, now: date ?? now) })
  }

  /// `s3_no_such_bucket` for `NoSuchBucket`; `http_403` if the answer has no code.
  package var taskCode: TaskFailure.Code {
    guard let word = code.map(Self.snakeCase), !word.isEmpty else { return .http(status) }
    return TaskFailure.Code(rawValue: "s3_\(word)")
  }

  private var taskClass: TaskFailure.Class {
    if isSkewed { return .wait }
    if isThrottling || refreshesCredentials || saysDamaged { return .retry }
    switch code {
    case "InternalError", "RequestTimeout", "RequestTimeoutException", "OperationAborted",
      "ConditionalRequestConflict", "IncompleteBody", "TemporaryRedirect":
      // What was cut short on the way can be sent again. A new bucket has its place only after some time.
      return .retry
    // These come with status 200 too, where the status tells nothing.
    case "AccessDenied", "SignatureDoesNotMatch", "InvalidAccessKeyId", "NoSuchBucket", "EntityTooLarge",
      "EntityTooSmall", "QuotaExceeded", "NotImplemented":
      return .fail
    default:
      return status >= 500 || status == 408 || status == 425 || (200..<300).contains(status) ? .retry : .fail
    }
  }

  private var sentence: String {
    let said = message.map { ": \(Self.line($0))" } ?? ""
    guard let code else { return "the store answered with status \(status)" }
    return "the store answered \(Self.line(code))\(said)"
  }

  private var elsewhere: String {
    guard isElsewhere else { return "" }
    let region = region.map { " in the region \($0)" } ?? ""
    return "; the bucket is elsewhere\(region): check region and endpoint of the credential's s3 form"
  }

  private func skew(now: Int64) -> String {
    guard isSkewed else { return "" }
    let own = "the clock of \(Machine.hostName)"
    guard let date else { return "; \(own) or the store's is wrong" }
    let difference = date - now
    return "; \(own) is \(abs(difference)) s \(difference < 0 ? "ahead of" : "behind") the store's"
  }

  /// At most 300 characters on one line. A character may have any number of bytes.
  private static func line(_ text: String) -> String {
    let start = text.prefix(bytes: 1000).prefix(300)
    let line = start.map { $0.isNewline || $0.unicodeScalars.contains { $0.value < 0x20 } ? " " : $0 }
    return String(line) + (start.utf8.count < text.utf8.count ? "…" : "")
  }

  /// `x_amz_content_sha256_mismatch` of `XAmzContentSHA256Mismatch`.
  private static func snakeCase(_ word: String) -> String {
    let letters = Array(word.utf8.prefix(64))
    var output: [UInt8] = []
    for (index, byte) in letters.enumerated() {
      let next = index + 1 < letters.count ? letters[index + 1] : 0
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"):
        // A new word begins after a small letter, and at the last capital of several if a small letter follows.
        let before = index > 0 ? letters[index - 1] : 0
        let follows = isSmall(before) || isDigit(before) || isCapital(before) && isSmall(next)
        if follows, output.last != UInt8(ascii: "_") { output.append(UInt8(ascii: "_")) }
        output.append(byte | 0x20)
      case _ where isSmall(byte) || isDigit(byte): output.append(byte)
      default: if !output.isEmpty, output.last != UInt8(ascii: "_") { output.append(UInt8(ascii: "_")) }
      }
    }
    if output.last == UInt8(ascii: "_") { output.removeLast() }
    return String(decoding: output, as: UTF8.self)
  }

  private static func isSmall(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  private static func isCapital(_ byte: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }
}
