import ReelhaulCurl
import ReelhaulSystem
import TaskCore

extension TaskFailure {
  /// The failure for a status that is not a success.
  static func status(_ status: Int, head: CurlHead, url: String, now: Int64) -> TaskFailure {
    TaskFailure(
      code: .http(status), message: "\(URLRedaction.redact(url)) answered with status \(status)",
      class: Self.class(ofStatus: status), retryAfter: Self.retryAfter(head, now: now))
  }

  /// 401 and 403 are retried: following the source's redirects again may lead to a freshly signed URL. If the source's
  /// own server refuses, ``DownloadMachine`` changes the class to `fail`.
  private static func `class`(ofStatus status: Int) -> Class {
    switch status {
    case 501, 505: .fail
    case 401, 403, 408, 425, 429, 500...599: .retry
    default: .fail
    }
  }

  /// The seconds to wait, from the `Retry-After` of an answer. A date is one of the server's clock, which the answer tells
  /// by its own `Date`; if it does not, `now` counts, in seconds since 1970.
  static func retryAfter(_ head: CurlHead, now: Int64, longest: Int = RetryPolicy.longestRetryAfter) -> Int? {
    head["retry-after"].flatMap {
      retryAfter($0, now: head["date"].flatMap(CurlDate.seconds) ?? now, longest: longest)
    }
  }

  /// The seconds to wait, from a `Retry-After` of either form, within 0…`longest`. Returns `nil` for a value that is
  /// neither a number nor a date. `now` is the server's time in seconds since 1970.
  static func retryAfter(_ text: String, now: Int64, longest: Int = RetryPolicy.longestRetryAfter) -> Int? {
    let longest = Int64(longest)
    if text.first?.isNumber == true || text.hasPrefix("-") || text.hasPrefix("+") {
      let digits = text.first?.isNumber == true ? text[...] : text.dropFirst()
      guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
      if text.hasPrefix("-") { return 0 }
      return Int(min(Int64(digits) ?? longest, longest))
    }
    return CurlDate.seconds(text).map { Int(min(max($0 - now, 0), longest)) }
  }

  /// A transfer that ended without a whole response.
  init(_ error: CurlError, url: String) {
    let isHosts = error.code == .outOfResources || error.code == .caFile
    let (code, advice) = Self.refusal(error) ?? (Code(rawValue: error.code.name), "")
    self.init(
      code: code, message: "\(URLRedaction.redact(url)): \(error.message)\(advice)",
      class: isHosts ? .wait : error.isRetryable ? .retry : .fail)
  }

  /// The code of a refused address, and what the message says in addition; nil for another error. Nobody is told how to
  /// allow an address that gives away credentials.
  private static func refusal(_ error: CurlError) -> (Code, advice: String)? {
    guard error.code == .addressRefused else { return nil }
    let addresses = error.refusedAddresses.compactMap { $0.withUnsafeBytes(IPAddress.init(sockaddr:)) }
    guard addresses.contains(where: NetworkPolicy.givesCredentials) else {
      return (.addressRefused, ": to allow it, name its network in REELHAUL_ALLOW_NETWORKS of the workers")
    }
    let reason = "it is link-local or a metadata service, and such an address hands out a machine's credentials"
    return (.addressGivesCredentials, ": \(reason)")
  }

  /// A second body, of `seen` bytes, is not the first one, which had `size`.
  static func fetchesDiffer(_ size: Int64, _ seen: String) -> TaskFailure {
    let message = "two fetches of the source differ, and nothing shows which is right: \(size) bytes and then \(seen)"
    return TaskFailure(code: .fetchesDiffer, message: message, class: .retry)
  }

  static func badResponse(_ reason: String, url: String) -> TaskFailure {
    TaskFailure(code: .badResponse, message: "\(URLRedaction.redact(url)): \(reason)", class: .retry)
  }
}
