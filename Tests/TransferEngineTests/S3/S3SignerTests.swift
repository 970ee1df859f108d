import ReelhaulCodec
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import Testing

@testable import TransferEngine

@Suite struct S3SignerTests {
  private static let example = S3Credential(
    accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
  private static let host = "examplebucket.s3.amazonaws.com"
  private static let empty = S3Signer.emptyPayload

  /// 2013-05-24T00:00:00Z
  private static let time: Int64 = 1_369_353_600

  @Test(
    "the four examples that AWS publishes have the published signatures",
    arguments: [
      (
        S3Request(
          method: "GET", host: host, path: "/test.txt", headers: [HeaderField(name: "Range", value: "bytes=0-9")]),
        empty, "host;range;x-amz-content-sha256;x-amz-date",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
      ),
      (
        S3Request(
          method: "PUT", host: host, path: "/test%24file.text",
          headers: [
            HeaderField(name: "Date", value: "Fri, 24 May 2013 00:00:00 GMT"),
            HeaderField(name: "x-amz-storage-class", value: "REDUCED_REDUNDANCY"),
          ]), "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
      ),
      (
        S3Request(method: "GET", host: host, path: "/", query: ["lifecycle": ""]), empty,
        "host;x-amz-content-sha256;x-amz-date", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
      ),
      (
        S3Request(method: "GET", host: host, path: "/", query: ["max-keys": "2", "prefix": "J"]), empty,
        "host;x-amz-content-sha256;x-amz-date", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
      ),
    ])
  func publishedExamples(request: S3Request, payload: String, names: String, signature: String) {
    let fields = S3Signer().fields(for: request, payloadHash: payload, credential: Self.example, at: Self.time)
    #expect(
      fields == [
        HeaderField(name: "x-amz-date", value: "20130524T000000Z"),
        HeaderField(name: "x-amz-content-sha256", value: payload),
        HeaderField(
          name: "Authorization",
          value: """
            AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, \
            SignedHeaders=\(names), Signature=\(signature)
            """),
      ])
  }

  @Test("the empty payload's hash is that of no bytes")
  func emptyPayload() {
    #expect(Hex.encode(digest(.sha256, of: [])) == S3Signer.emptyPayload)
  }

  @Test("a thousand generated requests have the signatures of botocore")
  func botocoreSignsTheSame() throws {
    var random = SplitMix64(seed: 41)
    let keys = ReferenceCases.keys(1000, seed: 42)
    let values = ReferenceCases.keys(1000, seed: 43)
    let signer = S3Signer()
    var (cases, expected): ([[String: String]], [[String: String]]) = ([], [])
    for (index, key) in keys.enumerated() {
      let credential = S3Credential(
        accessKeyID: "AK\(index % 7)", secretAccessKey: "secret/+\(index % 5)é",
        sessionToken: index.isMultiple(of: 3) ? "token/\(index)+==" : nil,
        region: ["us-east-1", "eu-west-1", "auto"][index % 3],
        endpoint: ["http://127.0.0.1:9000", "https://store.example", nil][index % 3], allowsHTTP: true)
      let endpoint = try S3Endpoint(credential, bucket: ["bucket", "a.b.c"][index % 2], key: key)
      var query: S3Query = [:]
      for other in 0..<Int.random(in: 0...3, using: &random) {
        query.append(
          ["uploads", "partNumber", "uploadId", "a-b", "a", "prefix"].randomElement(using: &random) ?? "",
          other.isMultiple(of: 2) ? values[index] : "")
      }
      var headers: [HeaderField] = []
      if index.isMultiple(of: 2) { headers.append(HeaderField(name: "Content-Type", value: "video/mp4;  a=\"b  c\" ")) }
      if index.isMultiple(of: 5) { headers.append(HeaderField(name: "x-amz-meta-reelhaul-task", value: "  a   b ")) }
      if index.isMultiple(of: 7) { headers.append(HeaderField(name: "If-None-Match", value: "*")) }
      if index.isMultiple(of: 11) { headers.append(HeaderField(name: "Expect", value: "100-continue")) }
      if index.isMultiple(of: 13) {
        headers += ["b", "a"].map { HeaderField(name: "X-Amz-Twice", value: $0) }
      }
      let time = Int64.random(in: 1_400_000_000...4_000_000_000, using: &random)
      let method = ["GET", "PUT", "POST", "DELETE", "HEAD"][index % 5]
      let payload = [S3Signer.emptyPayload, S3Signer.unsignedPayload][index % 2]
      let fields = signer.fields(
        for: S3Request(method, endpoint, query: query, headers: headers), payloadHash: payload,
        credential: credential, at: time)
      expected.append(Dictionary(uniqueKeysWithValues: fields.map { ($0.name.lowercased(), $0.value) }))
      let pairs = headers.map { "[\(ReferenceCases.quoted($0.name)), \(ReferenceCases.quoted($0.value))]" }
      cases.append([
        "method": ReferenceCases.quoted(method), "url": ReferenceCases.quoted(endpoint.url(query)), "time": "\(time)",
        "headers": "[\(pairs.joined(separator: ", "))]", "id": ReferenceCases.quoted(credential.accessKeyID),
        "secret": ReferenceCases.quoted(credential.secretAccessKey),
        "token": ReferenceCases.quoted(credential.sessionToken ?? ""),
        "region": ReferenceCases.quoted(credential.region), "payload": ReferenceCases.quoted(payload),
      ])
    }
    let answers = try ReferenceCases.answers("s3-sign.py", cases)
    try #require(answers.count == expected.count)
    for (answer, expected) in zip(answers, expected) {
      let fields = try strings(answer)
      #expect(fields == expected)
    }
  }

  @Test("a signing key is not used for another day, region or secret")
  func signingKeysAreNotMixed() {
    let signer = S3Signer()
    let request = S3Request(method: "GET", host: Self.host, path: "/")
    let other = S3Credential(accessKeyID: Self.example.accessKeyID, secretAccessKey: "other")
    var elsewhere = Self.example
    elsewhere.region = "eu-west-1"
    for credential in [Self.example, other, elsewhere, Self.example] {
      for day in 0..<100 {
        let time = Self.time + Int64(day) * 86_400
        let first = signer.fields(for: request, payloadHash: "x", credential: credential, at: time)
        #expect(first == S3Signer().fields(for: request, payloadHash: "x", credential: credential, at: time))
      }
    }
  }

  @Test("checksums have the forms of S3's fields")
  func checksums() {
    let bytes = Array("Hello, world!".utf8)
    #expect(S3Checksum.crc32c(bytes.withUnsafeBytes { crc32c($0) }) == "yKEG5Q==")
    #expect(S3Checksum.contentMD5(bytes) == "bNNVbesNpUvKBgtMOUeYOQ==")
  }

  @Test("HMAC has the digests of RFC 4231")
  func hmac() {
    #expect(
      Hex.encode(HMAC.sha256(key: [UInt8](repeating: 0x0B, count: 20), Array("Hi There".utf8)))
        == "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
    #expect(
      Hex.encode(HMAC.sha256(key: Array("Jefe".utf8), Array("what do ya want for nothing?".utf8)))
        == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
    #expect(
      Hex.encode(HMAC.sha256(key: [], [])) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
  }

  private func strings(_ json: String) throws -> [String: String] {
    var strings: [String: String] = [:]
    try JSONReader.read(Array(json.utf8)) { reader throws(DecodingFailure) in
      try reader.object { reader, name throws(DecodingFailure) in strings[name.text] = try reader.string() }
    }
    return strings
  }
}
