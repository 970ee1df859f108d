import Glibc

/// Checks that a request is signed in the form of SigV4, in headers or in the query, by a known key and at the right
/// time. It does not verify the signature: real servers do.
enum StoreAuthorization {
  /// The access key and the session token.
  static func credential(of request: StoreRequest) -> String {
    let key = fields(of: request)?.credential.first ?? ""
    return "\(key) \(request["x-amz-security-token"] ?? request.query["X-Amz-Security-Token"] ?? "")"
  }

  private struct Fields {
    /// Key, day, region, service, `aws4_request`.
    var credential: [String]
    var signedHeaders: [String]
    var signature: String
    var date: String
    var isPresigned = false
  }

  private static func fields(of request: StoreRequest) -> Fields? {
    if request.query["X-Amz-Algorithm"] == "AWS4-HMAC-SHA256" {
      let query = request.query
      return Fields(
        credential: (query["X-Amz-Credential"] ?? "").split(separator: "/").map(String.init),
        signedHeaders: (query["X-Amz-SignedHeaders"] ?? "").split(separator: ";").map(String.init),
        signature: query["X-Amz-Signature"] ?? "", date: query["X-Amz-Date"] ?? "", isPresigned: true)
    }
    guard let header = request["authorization"], header.hasPrefix("AWS4-HMAC-SHA256 ") else { return nil }
    var parts: [String: String] = [:]
    for part in header.dropFirst(17).split(separator: ",") {
      let sides = part.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
      if sides.count == 2 { parts[String(sides[0])] = String(sides[1]) }
    }
    return Fields(
      credential: (parts["Credential"] ?? "").split(separator: "/").map(String.init),
      signedHeaders: (parts["SignedHeaders"] ?? "").split(separator: ";").map(String.init),
      signature: parts["Signature"] ?? "", date: request["x-amz-date"] ?? "")
  }

  /// The answer to a request that may not come in; nil if it may.
  static func refusal(of request: StoreRequest, _ state: StoreState, clockSkew: Int) -> OriginResponse? {
    let options = state.options
    if options.accessKeys.isEmpty { return nil }
    guard let fields = fields(of: request) else { return StoreXML.error(403, "AccessDenied", "Access Denied") }
    let credential = fields.credential
    guard credential.count == 5, credential[3...] == ["s3", "aws4_request"], fields.date.count == 16,
      fields.date.hasPrefix(credential[1]), fields.signature.count == 64,
      fields.signature.allSatisfy({ $0.isHexDigit && !$0.isUppercase })
    else { return StoreXML.error(400, "AuthorizationHeaderMalformed", "The authorization header is malformed") }
    guard options.accessKeys.contains(credential[0]) else {
      return StoreXML.error(403, "InvalidAccessKeyId", "The access key does not exist in our records.")
    }
    guard credential[2] == options.region else {
      let region = StoreXML.element("Region", options.region)
      var response = StoreXML.error(
        400, "AuthorizationHeaderMalformed",
        "The authorization header is malformed; the region '\(credential[2])' is wrong; expecting '\(options.region)'",
        more: region)
      response["x-amz-bucket-region"] = options.region
      return response
    }
    if state.expired.contains(Self.credential(of: request)) {
      return StoreXML.error(400, "ExpiredToken", "The provided token has expired.")
    }
    let mustBeSigned =
      ["host"] + request.headers.map(\.name).filter { $0.hasPrefix("x-amz-") || $0 == "content-md5" }
    if let missing = mustBeSigned.first(where: { !fields.signedHeaders.contains($0) }) {
      return StoreXML.error(403, "AccessDenied", "There were headers present which were not signed: \(missing)")
    }
    guard fields.signedHeaders == fields.signedHeaders.sorted() else {
      return StoreXML.error(403, "SignatureDoesNotMatch", "The signed headers are not sorted")
    }
    let now = time(nil) + clockSkew
    guard let date = seconds(fields.date) else {
      return StoreXML.error(403, "AccessDenied", "AWS authentication requires a valid Date or x-amz-date header")
    }
    let patience = fields.isPresigned ? (request.query["X-Amz-Expires"].flatMap { Int($0) } ?? 0) : 900
    guard date <= now + 900, now <= date + patience else {
      if fields.isPresigned { return StoreXML.error(403, "AccessDenied", "Request has expired") }
      var response = StoreXML.error(
        403, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.",
        more: StoreXML.element("ServerTime", StoreText.isoDate(now)))
      response["Date"] = StoreText.date(now)
      return response
    }
    return nil
  }

  /// Of `20260101T000000Z`.
  private static func seconds(_ date: String) -> Int? {
    let digits = date.utf8.compactMap { (48...57).contains($0) ? Int32($0 - 48) : nil }
    guard date.utf8.count == 16, digits.count == 14, date.hasSuffix("Z") else { return nil }
    func number(_ range: Range<Int>) -> Int32 { digits[range].reduce(0) { $0 * 10 + $1 } }
    var parts = tm()
    parts.tm_year = number(0..<4) - 1900
    parts.tm_mon = number(4..<6) - 1
    parts.tm_mday = number(6..<8)
    parts.tm_hour = number(8..<10)
    parts.tm_min = number(10..<12)
    parts.tm_sec = number(12..<14)
    return timegm(&parts)
  }
}
