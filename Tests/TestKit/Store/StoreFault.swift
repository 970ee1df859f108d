/// One fault of a ``StoreServer``, for one request. Several apply together.
package enum StoreFault: Sendable {
  // The connection.

  case closeBeforeReading
  /// The connection ends after this number of body bytes. tus keeps them, others do not.
  case closeAfter(bytes: Int64)
  /// What came of a body before the connection ended is kept as the whole object.
  case keepCut
  /// Reads no further than this number of body bytes until the gate opens.
  case holdBody(after: Int64, OriginGate)
  /// `Expect: 100-continue` is not answered before the body is read.
  case noContinue
  /// The answer of another fault comes at once, and the connection goes on after the whole body, which is read then.
  case answersFirst
  /// The refusal of another fault comes after this number of body bytes, and the rest is not read.
  case refuseAfter(bytes: Int64)
  /// The request is applied, and the answer is lost.
  case closeAfterApplying
  /// The request is applied, and the connection ends within the head of the answer.
  case cutHead
  /// The request is applied, and the answer waits for the gate.
  case holdAnswer(OriginGate)
  /// Milliseconds between the request and the answer.
  case delay(Int)

  // An answer instead of doing what was asked. It comes before the body if the client expects 100.

  case status(Int, headers: [(String, String)] = [], body: String = "")
  case redirect(to: String, status: Int = 307)
  /// 503 SlowDown for the first requests of each target.
  case slowDown(times: Int)
  /// 412, whatever the condition says. An upload stays open.
  case preconditionFailed412
  /// 409 ConditionalRequestConflict.
  case conflict409OnComplete(uploadIsGone: Bool)
  /// 404 NoSuchUpload, and the upload is gone.
  case noSuchUpload
  /// 400 ExpiredToken, from now on for all requests with the same access key and session token.
  case expiredToken
  /// The store's clock differs by this number of seconds: 403 RequestTimeTooSkewed and its `Date`, until the request
  /// is dated by that clock.
  case clockSkew(seconds: Int)
  /// tus: 423 for the first requests of each target.
  case locked423(times: Int)
  /// tus: 410, and the upload is gone.
  case gone410

  // Doing something else than what was asked.

  /// Conditions of the request are not looked at.
  case ignoreIfNoneMatch
  /// `If-None-Match` is not looked at, and `If-Match` is.
  case ignoreIfNoneMatchAlone
  /// A part is answered as usual and not kept.
  case dropPart
  /// The object or part is answered as usual and loses its last bytes.
  case truncateObject(by: Int64)
  /// One bit changes: of what is kept, or of what a GET sends.
  case corruptBit
  /// The end of an upload is answered as usual, and nothing is there.
  case completeButMissing
  /// 400 MalformedXML to the end of an upload that tells checksums of parts.
  case refuseChecksumsAtEnd
  /// A copy is taken for a request that sends an empty body.
  case ignoreCopySource
  /// `aws-chunked` bodies are kept with their framing, instead of 501.
  case keepsFraming

  // Lies in the answer.

  /// The request is applied, and answered with this status.
  case statusAfterApplying(Int)
  case wrongETag
  case capitalETag
  case wrongChecksumEcho
  /// Sets or removes a header field.
  case header(String, String?)
  /// Complete and copies: 200 with an `<Error>` of this code, and nothing is done.
  case lieComplete200WithError(code: String = "InternalError")
  /// The last parts are missing from the list.
  case listPartsMissing(Int)
  /// The list has a part more, which nobody has sent.
  case listPartsExtra
  /// The XML ends in the middle, with a matching length.
  case truncatedXML
  /// This number of bytes of white space after the first element of the XML.
  case hugeXML(bytes: Int)

  // tus.

  /// The last bytes are forgotten, before a HEAD is answered or after a PATCH is applied.
  case offsetFalls(by: Int64)
  /// The answered offset is too large; negative: too small.
  case offsetAhead(by: Int64)
  /// The announced and enforced maximum.
  case maxSize(Int64)
  /// The created upload's Location has this origin, for example `http://127.0.0.2:80`.
  case locationOnOtherHost(String)
  case noLocation
}

// Questions to the faults of one request.
extension [StoreFault] {
  var ignoresConditions: Bool { contains { if case .ignoreIfNoneMatch = $0 { true } else { false } } }
  var looksAtIfMatchAlone: Bool { contains { if case .ignoreIfNoneMatchAlone = $0 { true } else { false } } }
  var ignoresCopySource: Bool { contains { if case .ignoreCopySource = $0 { true } else { false } } }
  var refusesChecksumsAtEnd: Bool { contains { if case .refuseChecksumsAtEnd = $0 { true } else { false } } }
  var dropsPart: Bool { contains { if case .dropPart = $0 { true } else { false } } }
  var corrupts: Bool { contains { if case .corruptBit = $0 { true } else { false } } }
  var losesObject: Bool { contains { if case .completeButMissing = $0 { true } else { false } } }
  var keepsFraming: Bool { contains { if case .keepsFraming = $0 { true } else { false } } }
  var closesAfterApplying: Bool { contains { if case .closeAfterApplying = $0 { true } else { false } } }
  var cutsHead: Bool { contains { if case .cutHead = $0 { true } else { false } } }
  var closesBeforeReading: Bool { contains { if case .closeBeforeReading = $0 { true } else { false } } }
  var sendsNoContinue: Bool { contains { if case .noContinue = $0 { true } else { false } } }
  var answersFirst: Bool { contains { if case .answersFirst = $0 { true } else { false } } }
  var refusesLater: Bool { contains { if case .refuseAfter = $0 { true } else { false } } }
  var truncatesBy: Int64 { reduce(0) { if case .truncateObject(let by) = $1 { $0 + by } else { $0 } } }
  var offsetFallsBy: Int64 { reduce(0) { if case .offsetFalls(let by) = $1 { $0 + by } else { $0 } } }
  var keepsCut: Bool { contains { if case .keepCut = $0 { true } else { false } } }
  var clockSkew: Int { reduce(0) { if case .clockSkew(let seconds) = $1 { $0 + seconds } else { $0 } } }
  var tusMaxSize: Int64? { reduce(nil) { if case .maxSize(let size) = $1 { size } else { $0 } } }

  /// What is kept of `pieces`.
  func damaged(_ pieces: [StorePiece]) -> [StorePiece] {
    var pieces = pieces
    if truncatesBy > 0 {
      let object = StoreObject(pieces: pieces)
      pieces = object.part(0..<Swift.max(0, object.size - truncatesBy)) ?? pieces
    }
    if corrupts, let last = pieces.last { pieces[pieces.count - 1] = last.corrupted() }
    return pieces
  }
}
