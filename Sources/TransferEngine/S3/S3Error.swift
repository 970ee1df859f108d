import ReelhaulCurl
import TaskCore

/// What a store says went wrong. It is for the transfer, which knows what to do about some of them; for the task see
/// ``failure(_:now:)``.
package struct S3Error: Error, Hashable, Sendable {
  static let element = "Error"

  package var status: Int
  /// S3's own word: `NoSuchBucket`. Nil if the answer has no body with one, as that to a HEAD.
  package var code: String?
  package var message: String?
  /// The region that the bucket is in, if the answer tells it: send the request there, once.
  package var region: String?
  /// The seconds since 1970 when the store answered.
  package var date: Int64?
  /// The field `Retry-After`.
  package var retryAfter: String?

  package init(status: Int, code: String? = nil, message: String? = nil) {
    self.status = status
    self.code = code
    self.message = message
  }

  /// The error of an answer that is no success, or of a success with an error inside. A body that is no document of S3 is
  /// ignored, because gateways answer with pages of their own.
  package init(_ head: CurlHead, body: [UInt8]) {
    let root = try? S3XMLParser.read(body)
    if let root, root.name == Self.element {
      self.init(root, status: head.status)
    } else {
      self.init(status: head.status)
    }
    region = region ?? head["x-amz-bucket-region"].flatMap { S3Credential.isRegion($0) ? $0 : nil }
    date = head["date"].flatMap(CurlDate.seconds)
    retryAfter = head["retry-after"]
  }

  init(_ element: S3XMLElement, status: Int) {
    self.init(
      status: element.word("Code").flatMap { Self.statuses[$0] } ?? status,
      code: element.word("Code").map { String($0.prefix(128)) },
      message: element.optional("Message"))
    region = element.word("Region").flatMap { S3Credential.isRegion($0) ? $0 : nil }
  }

  /// What an error means whose status cannot tell, because it is inside a success.
  private static let statuses = [
    "PreconditionFailed": 412, "NoSuchUpload": 404, "NoSuchKey": 404, "InvalidPart": 400,
    "ConditionalRequestConflict": 409,
  ]

  /// Whether the store may not know or not take something that the request has beyond what it must, such as a condition or
  /// a checksum. The same request without it tells.
  var mayRefuseField: Bool {
    status == 501 || code == "NotImplemented"
      || status == 400 && [nil, "InvalidRequest", "InvalidArgument"].contains(code)
  }

  var mayRefuseChecksum: Bool {
    mayRefuseField || status == 400 && !saysDamaged && message?.lowercased().contains("x-amz-checksum") == true
  }

  /// Whether the bytes were not those that the request told of: they were damaged on the way, and can be sent again.
  var saysDamaged: Bool {
    ["BadDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch"].contains(code)
  }

  /// Whether the store no longer has the multipart upload that it was asked about. A 404 that says nothing more may come
  /// from a gateway before it.
  var losesUpload: Bool { status == 404 && code != nil && code != "NoSuchBucket" }

  /// Whether the keys may have been replaced by others since they were fetched.
  var refusesKeys: Bool {
    ["InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "InvalidClientTokenId"].contains(code)
      || code == nil && status == 401
  }

  /// Whether the same request may succeed with credentials that are fetched anew. Once.
  package var refreshesCredentials: Bool {
    ["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"].contains(code)
  }

  /// Whether the request belongs to another region or endpoint.
  package var isElsewhere: Bool {
    switch code {
    case "PermanentRedirect", "TemporaryRedirect", "Redirect", "AuthorizationHeaderMalformed",
      "IllegalLocationConstraintException", "IncorrectEndpoint":
      true
    case nil: [301, 302, 307, 308].contains(status) || status == 400 && region != nil
    default: false
    }
  }

  /// Whether the store is asked for too much: fewer requests at once help.
  package var isThrottling: Bool {
    taskCode.isRefusal || TaskFailure.Code.refusals.contains(status)
  }

  /// Whether the clocks of worker and store differ by too much.
  package var isSkewed: Bool { code == "RequestTimeTooSkewed" }

  /// The seconds by which the store's clock is ahead of `time`, with which the request was signed, if that may be why it
  /// was refused: the answer to a HEAD cannot say it.
  package func clockDifference(from time: Int64) -> Int64? {
    guard let date, isSkewed || code == nil && status == 403, abs(date - time) > Self.patience else { return nil }
    return date - time
  }

  /// Stores allow 900 seconds; the answer may have been on its way for some.
  private static let patience: Int64 = 840
}
