import ReelhaulCurl
import ReelhaulSystem
import TaskCore
import Testing

@testable import TransferEngine

@Suite struct S3ErrorTests {
  private static func error(_ status: Int, _ code: String?, fields: [CurlHead.Field] = [], rest: String = "") -> S3Error
  {
    let body = code.map { "<Error><Code>\($0)</Code><Message>It said so.</Message>\(rest)</Error>" } ?? ""
    return S3Error(CurlHead(status: status, fields: fields), body: Array(body.utf8))
  }

  @Test("what a store says is short, however long its characters are") func short() {
    let body = "<Error><Code>Strange</Code><Message>a\(String(repeating: "\u{301}", count: 100_000))</Message></Error>"
    let error = S3Error(CurlHead(status: 403, fields: []), body: Array(body.utf8))
    #expect(error.failure("s3://a/b", now: 0).message.utf8.count < 1200)
  }

  @Test(
    "every code has its word and its class",
    arguments: [
      (503, "SlowDown", "s3_slow_down", .retry), (503, "ServiceUnavailable", "s3_service_unavailable", .retry),
      (500, "InternalError", "s3_internal_error", .retry), (200, "InternalError", "s3_internal_error", .retry),
      (400, "RequestTimeout", "s3_request_timeout", .retry),
      (409, "OperationAborted", "s3_operation_aborted", .retry),
      (409, "ConditionalRequestConflict", "s3_conditional_request_conflict", .retry),
      (400, "BadDigest", "s3_bad_digest", .retry), (507, "XMinioStorageFull", "s3_x_minio_storage_full", .retry),
      (429, "TooManyRequests", "s3_too_many_requests", .retry), (200, "Strange", "s3_strange", .retry),
      (403, "AccessDenied", "s3_access_denied", .fail), (200, "AccessDenied", "s3_access_denied", .fail),
      (403, "SignatureDoesNotMatch", "s3_signature_does_not_match", .fail),
      (403, "InvalidAccessKeyId", "s3_invalid_access_key_id", .fail),
      (404, "NoSuchBucket", "s3_no_such_bucket", .fail), (404, "NoSuchUpload", "s3_no_such_upload", .fail),
      (200, "NoSuchKey", "s3_no_such_key", .fail),
      (400, "EntityTooLarge", "s3_entity_too_large", .fail), (400, "QuotaExceeded", "s3_quota_exceeded", .fail),
      (412, "PreconditionFailed", "s3_precondition_failed", .fail),
      (400, "ExpiredToken", "s3_expired_token", .retry),
      (400, "TokenRefreshRequired", "s3_token_refresh_required", .retry),
      (403, "RequestTimeTooSkewed", "s3_request_time_too_skewed", .wait),
      (301, "PermanentRedirect", "s3_permanent_redirect", .fail),
      (400, "XAmzContentSHA256Mismatch", "s3_x_amz_content_sha256_mismatch", .retry),
      (400, "InvalidURI", "s3_invalid_uri", .fail), (400, "a.B-c//D", "s3_a_b_c_d", .fail),
      (403, nil, "http_403", .fail), (404, nil, "http_404", .fail), (500, nil, "http_500", .retry),
      (502, nil, "http_502", .retry), (503, nil, "http_503", .retry), (504, nil, "http_504", .retry),
      (429, nil, "http_429", .retry),
    ] as [(Int, String?, String, TaskFailure.Class)])
  func codes(status: Int, code: String?, word: String, class: TaskFailure.Class) {
    let failure = Self.error(status, code).failure("s3://films/a", now: 0)
    #expect(failure.code.rawValue == word)
    #expect(failure.class == `class`)
    #expect(failure.message.hasPrefix("s3://films/a: the store answered "))
    #expect(failure.message.contains(code ?? "status \(status)"))
  }

  @Test(
    "an answer that is no document of S3 counts by its status", arguments: ["", "<html>", "<!DOCTYPE html>", "\u{0}"])
  func otherBodies(body: String) {
    let error = S3Error(CurlHead(status: 502), body: Array(body.utf8))
    #expect(error.code == nil)
    #expect(error.failure("x", now: 0).class == .retry)
  }

  @Test("a wrong clock is told with its host and the difference")
  func skew() {
    let date = CurlHead.Field(name: "date", value: "Fri, 24 May 2013 00:00:00 GMT")
    let error = Self.error(403, "RequestTimeTooSkewed", fields: [date])
    let ahead = error.failure("x", now: 1_369_353_600 + 1000).message
    #expect(ahead.contains("the clock of \(Machine.hostName) is 1000 s ahead of the store's"))
    let behind = error.failure("x", now: 1_369_353_600 - 60).message
    #expect(behind.contains("60 s behind the store's"))
    #expect(Self.error(403, "RequestTimeTooSkewed").failure("x", now: 0).message.contains("is wrong"))
  }

  @Test("the region that an answer names is told, if it can be one")
  func elsewhere() {
    #expect(Self.error(301, "PermanentRedirect").isElsewhere)
    let malformed = Self.error(400, "AuthorizationHeaderMalformed", rest: "<Region>eu-west-1</Region>")
    #expect(malformed.isElsewhere)
    #expect(malformed.region == "eu-west-1")
    let head = Self.error(400, nil, fields: [.init(name: "x-amz-bucket-region", value: "eu-west-1")])
    #expect(head.isElsewhere)
    #expect(head.region == "eu-west-1")
    for text in ["evil.test/", "a@b", "a.b", ""] {
      #expect(Self.error(400, "AuthorizationHeaderMalformed", rest: "<Region>\(text)</Region>").region == nil)
      #expect(Self.error(400, nil, fields: [.init(name: "x-amz-bucket-region", value: text)]).region == nil)
    }
    for status in [301, 307] {
      let message = Self.error(status, nil).failure("s3://films/a", now: 0).message
      #expect(message.contains("the bucket is elsewhere: check region and endpoint"), "\(message)")
    }
    #expect(!Self.error(403, "AccessDenied").failure("s3://films/a", now: 0).message.contains("elsewhere"))
    #expect(!Self.error(400, nil).isElsewhere)
    #expect(!Self.error(403, "AccessDenied").isElsewhere)
  }

  @Test("throttling and expired credentials are told apart from other errors")
  func kinds() {
    #expect(["SlowDown", "ServiceUnavailable"].allSatisfy { Self.error(503, $0).isThrottling })
    #expect(!Self.error(500, "InternalError").isThrottling)
    #expect(["ExpiredToken", "TokenRefreshRequired"].allSatisfy { Self.error(400, $0).refreshesCredentials })
    #expect(!Self.error(403, "AccessDenied").refreshesCredentials)
  }

  @Test("a store asks for seconds, or for a time of its own clock, whatever that of the worker says")
  func retryAfter() {
    let fields: [[(String, String)]] = [
      [("retry-after", "20")],
      [("retry-after", "Fri, 01 Jan 2100 00:00:20 GMT"), ("date", "Fri, 01 Jan 2100 00:00:00 GMT")],
    ]
    for fields in fields.map({ $0.map { CurlHead.Field(name: $0.0, value: $0.1) } }) {
      #expect(Self.error(503, "SlowDown", fields: fields).failure("x", now: 0).retryAfter == 20)
      let head = CurlHead(status: 503, fields: fields)
      #expect(TaskFailure.status(503, head: head, url: "http://a/", now: 0).retryAfter == 20)
    }
  }

  @Test("a message of a store is one line and not endless")
  func messages() {
    let long = "line\nline\u{7}" + String(repeating: "x", count: 2000)
    let message = S3Error(status: 400, code: "A\nB", message: long).failure("x", now: 0).message
    #expect(!message.contains("\n") && !message.contains("\u{7}"))
    #expect(message.count < 800)
  }
}
