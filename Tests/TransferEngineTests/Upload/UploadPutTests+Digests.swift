import ReelhaulDigest
import ReelhaulMessages
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What the answers of a server tell of the bytes that it has.
extension UploadPutTests {
  @Test("a file that is shorter at the server is no success") func shorter() async throws {
    try await upload(script: { $0.operation == .put ? [.truncateObject(by: 1000)] : [] }).run { _, outcome in
      #expect(outcome.failure?.code == .sizeMismatch && outcome.failure?.class == .retry, "\(outcome)")
    }
  }

  @Test(
    "a presigned URL gets one PUT, which nobody has signed more than",
    arguments: ["sig=1", "X-Amz-Signature=1", "X-Goog-Signature=1", "Signature=1&Expires=2"])
  func presigned(query: String) async throws {
    for own in [nil, "video/mp4"] as [String?] {
      try await upload(
        {
          $0.destination! += "?\(query)"
          $0.ifExists = .fail
          if let own { $0.parameters = Array(#"{"contentType":"\#(own)"}"#.utf8) }
        }, script: { _ in [] }
      ).run { harness, outcome in
        #expect(outcome.failure == nil, "\(outcome)")
        #expect(harness.store.exchanges.map(\.operation) == [.put])
        #expect(harness.store.exchanges.allSatisfy { $0.request["if-none-match"] == nil })
        // A signature of version 2 is one of the media type, too.
        let type = own ?? (query.hasPrefix("Signature") ? nil : "application/octet-stream")
        #expect(harness.store.exchanges.allSatisfy { $0.request["content-type"] == type })
      }
    }
  }

  @Test("what the server tells of the bytes it has is checked, and the output says what proved them")
  func verified() async throws {
    let sha256 = digest(.sha256, of: Self.bytes())
    let echo = "sha-256=:\(Base64.encode(sha256)):"
    let crc = StoreChecksum.crc32c.of([Self.bytes()])
    for (fields, expected) in [
      ([("Repr-Digest", echo)], UploadOutput.Verified.sha256), ([("Repr-Digest", "md5=:AA==:, \(echo)")], .sha256),
      ([("x-amz-checksum-sha256", Base64.encode(sha256))], .sha256), ([("x-amz-checksum-crc32c", crc)], .crc32c),
      ([], .md5),
      ([("ETag", "\"00000000000000000000000000000bad\"")], .size), ([("ETag", nil)], .size),
    ] as [([(String, String?)], UploadOutput.Verified)] {
      try await upload(
        script: { $0.operation == .put ? fields.map { .header($0.0, $0.1) } : [] }
      ).run { harness, outcome in
        #expect(outcome.object?.verified == expected, "\(fields): \(outcome)")
        Self.expectThere(harness)
      }
    }
    try await upload({ $0.expect.sha256 = sha256 }, script: { _ in [] }).run { harness, outcome in
      #expect(harness.store.exchanges(.put).first?.request["repr-digest"] == echo)
      #expect(outcome.object?.verified == .sha256, "\(outcome)")
    }
  }

  @Test(
    "a server that tells the digest of other bytes has not got the file",
    arguments: [
      ("Repr-Digest", "sha-256=:\(Base64.encode(digest(.sha256, of: [1]))):"), ("x-amz-checksum-crc32c", "AAAAAA=="),
    ])
  func damaged(name: String, value: String) async throws {
    try await upload(script: { $0.operation == .put ? [.header(name, value)] : [] }).run { _, outcome in
      #expect(outcome.failure?.code == .digestMismatch && outcome.failure?.class == .retry, "\(outcome)")
    }
  }

  @Test("a digest of what the answer itself says, or one that can be none, is not that of the file")
  func otherDigest() async throws {
    for (fields, body) in Self.unrelated {
      try await upload(
        script: { $0.operation == .put ? [.status(201, headers: fields, body: body), .noContinue] : [] }
      ).run { harness, outcome in
        #expect(outcome.failure == nil, "\(fields): \(outcome)")
        #expect(harness.store.exchanges(.put).count == 1)
      }
    }
    let fields = [("Repr-Digest", Self.sha256(of: Self.json)), ("Content-Location", "film.mp4")]
    try await upload(
      script: { $0.operation == .put ? [.status(200, headers: fields, body: Self.json), .noContinue] : [] }
    ).run { _, outcome in
      #expect(outcome.failure?.code == .digestMismatch && outcome.failure?.class == .retry, "\(outcome)")
    }
  }

  static let json = #"{"status": "stored"}"#

  /// The `Repr-Digest` of a text.
  static func sha256(of text: String) -> String { "sha-256=:\(Base64.encode(digest(.sha256, of: Array(text.utf8)))):" }

  /// Answers that say nothing of the file: header fields, and the body.
  static let unrelated: [([(String, String)], String)] = [
    ([("Repr-Digest", sha256(of: json))], json), ([("Repr-Digest", sha256(of: "gzip"))], json),
    ([("Repr-Digest", sha256(of: ""))], ""), ([("Repr-Digest", "sha-256=:AAAA:")], ""),
    ([("Repr-Digest", sha256(of: json)), ("Content-Location", "/jobs/7")], ""),
    ([("x-amz-checksum-sha256", String(repeating: "0a", count: 32))], ""),
    ([("x-amz-checksum-crc32c", "0000000a")], ""),
  ]

  @Test(
    "a file of which the server tells the digest of other bytes is not in its own way: it is compared where it stays",
    arguments: [IfExists.fail, .skip])
  func damagedAndKept(ifExists: IfExists) async throws {
    for (fault, requests) in [(StoreFault.corruptBit, 1), (.truncateObject(by: 1000), 2), (.header("X", "y"), 1)] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        harness.store.script { request in
          guard request.operation == .put, request.ordinal == 1 else { return [] }
          return [fault, .header("Repr-Digest", Self.sha256(of: "other"))]
        }
        let outcome = await harness.run(Self.spec(harness) { $0.ifExists = ifExists })
        #expect(harness.store.exchanges(.put).count == requests, "\(fault)")
        if case .corruptBit = fault {
          #expect(outcome.failure?.code == .digestMismatch && outcome.failure?.class == .fail, "\(outcome)")
        } else {
          #expect(outcome.failure == nil, "\(fault): \(outcome)")
          Self.expectThere(harness)
        }
      }
    }
  }
}
