extension StoreFault {
  /// The answer that comes instead of doing what was asked.
  func refusal(of request: StoreRequest, in state: inout StoreState) -> OriginResponse? {
    switch self {
    case .status(let status, let headers, let body):
      var response = OriginResponse.text(status, body)
      for (name, value) in headers { response[name] = value }
      return response
    case .redirect(let url, let status):
      var response = StoreXML.error(status, "TemporaryRedirect", "Please send this request to \(url)")
      response["Location"] = url
      return response
    case .slowDown(let times):
      guard request.attempt <= times else { return nil }
      var response = StoreXML.error(503, "SlowDown", "Please reduce your request rate.")
      response["Retry-After"] = "0"
      return response
    case .preconditionFailed412:
      return StoreXML.error(412, "PreconditionFailed", "At least one of the preconditions did not hold")
    case .conflict409OnComplete(let isGone):
      guard request.operation == .completeUpload else { return nil }
      if isGone, let id = request.uploadID { state.uploads[id] = nil }
      return StoreXML.error(409, "ConditionalRequestConflict", "A conflicting operation occurred. Start a new upload.")
    case .noSuchUpload:
      guard let id = request.uploadID else { return nil }
      state.uploads[id] = nil
      return StoreXML.error(404, "NoSuchUpload", "The specified upload does not exist.")
    case .expiredToken:
      state.expired.insert(StoreAuthorization.credential(of: request))
      return nil
    case .locked423(let times):
      return request.attempt <= times ? .text(423, "locked") : nil
    case .gone410:
      state.uploads[request.path.split(separator: "/").last.map(String.init) ?? ""] = nil
      return .text(410, "gone")
    case .lieComplete200WithError(let code):
      guard [.completeUpload, .copyObject, .uploadPartCopy].contains(request.operation) else { return nil }
      return StoreXML.error(200, code, "We encountered an internal error. Please try again.")
    default: return nil
    }
  }

  /// Changes a correct answer.
  func change(_ response: inout OriginResponse, to request: StoreRequest) {
    switch self {
    case .statusAfterApplying(let status): response.status = status
    case .wrongETag:
      let wrong = "\"00000000000000000000000000000bad\""
      if let right = response["ETag"] {
        response["ETag"] = wrong
        response.replaceText(StoreXML.escaped(right), with: StoreXML.escaped(wrong))
      } else {
        response.replaceElement("ETag", with: StoreXML.escaped(wrong))
      }
    case .capitalETag:
      response["ETag"] = response["ETag"]?.uppercased()
    case .wrongChecksumEcho:
      for kind in StoreChecksum.allCases {
        if response[kind.header] != nil { response[kind.header] = kind.of([[1]]) }
        response.replaceElement(kind.element, with: kind.of([[1]]))
      }
    case .header(let name, let value):
      response[name] = value
    case .truncatedXML:
      response.cut(to: response.length / 2)
      response["Content-Length"] = "\(response.length)"
    case .hugeXML(let bytes):
      guard let text = response.text, let start = text.dropFirst(text.hasPrefix("<?") ? 2 : 0).firstIndex(of: "<"),
        let end = text[start...].firstIndex(of: ">")
      else { return }
      let padding = [UInt8](repeating: UInt8(ascii: " "), count: bytes)
      response.body = [.bytes(Array(text[...end].utf8)), .bytes(padding), .bytes(Array(text[end...].dropFirst().utf8))]
      response["Content-Length"] = "\(response.length)"
    case .offsetAhead(let difference):
      guard let offset = response["Upload-Offset"].flatMap({ Int64($0) }) else { return }
      response["Upload-Offset"] = "\(offset + difference)"
    case .locationOnOtherHost(let origin):
      guard let location = response["Location"], let path = location.firstIndex(of: "/tus/") else { return }
      response["Location"] = origin + location[path...]
    case .noLocation:
      response["Location"] = nil
    default: break
    }
  }
}

extension String {
  /// Where `text` begins.
  fileprivate func firstIndex(of text: String) -> Index? {
    indices.first { self[$0...].hasPrefix(text) }
  }
}

extension OriginResponse {
  /// The body of a small answer.
  fileprivate var text: String? {
    guard body.count == 1, case .bytes(let bytes) = body[0] else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  fileprivate mutating func replaceText(_ old: String, with new: String) {
    guard let text, text.contains(old) else { return }
    setBody(text.split(separator: old, omittingEmptySubsequences: false).joined(separator: new))
  }

  /// Changes the content of each element `name` of an XML body.
  fileprivate mutating func replaceElement(_ name: String, with content: String) {
    guard self["Content-Type"] == "application/xml", let text else { return }
    for old in Set(StoreXML.contents(of: name, in: text)) {
      replaceText("<\(name)>\(old)</\(name)>", with: "<\(name)>\(content)</\(name)>")
    }
  }

  fileprivate mutating func setBody(_ text: String) {
    body = [.bytes(Array(text.utf8))]
    self["Content-Length"] = "\(text.utf8.count)"
  }
}
