import TestKit
import Testing

@Suite("The store's plain HTTP and its faults, as curl sees them")
struct StoreServerTests {
  /// A store without signatures, for curl.
  private func open() throws -> StoreServer {
    var options = StoreOptions()
    options.accessKeys = []
    options.minimumPartSize = 1
    return try StoreServer(options: options)
  }

  private func put(_ url: String, _ text: String, _ headers: String...) async throws -> CurlCommand.Answer {
    var more = ["X-One: 1", "X-Two: 2"]
    more.replaceSubrange(0..<headers.count, with: headers)
    return try await CurlCommand.run("-X", "PUT", "-H", more[0], "-H", more[1], "--data-binary", text, url)
  }

  /// An upload with the parts `ab`, `cd` and so on. Returns its id.
  private func begin(_ store: StoreServer, parts: String...) async throws -> String {
    _ = try await CurlCommand.run("-X", "POST", store.url("/films/a?uploads"))
    let id = try #require(store.uploads.keys.first)
    for (index, part) in parts.enumerated() {
      _ = try await put(store.url("/films/a?partNumber=\(index + 1)&uploadId=\(id)"), part)
    }
    return id
  }

  private func complete(_ store: StoreServer, _ id: String, _ header: String = "X: y") async throws
    -> CurlCommand.Answer
  {
    let parts = (store.uploads[id]?.parts ?? [:]).sorted { $0.key < $1.key }.map { number, piece in
      let etag = piece.md5.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
      return "<Part><PartNumber>\(number)</PartNumber><ETag>&quot;\(etag)&quot;</ETag></Part>"
    }
    return try await CurlCommand.run(
      "-X", "POST", "-H", header, "--data-binary",
      "<CompleteMultipartUpload>\(parts.joined())</CompleteMultipartUpload>", store.url("/films/a?uploadId=\(id)"))
  }

  @Test("curl -T, with a length and chunked, with and without 100, is read back whole and in part")
  func plain() async throws {
    let store = try open()
    defer { store.close() }
    let film = try Film(size: 3 << 20)
    let bytes = film.content.bytes(0..<film.size)
    let made = try await CurlCommand.run("-T", film.path, store.url("/put/a"))
    #expect(made.status == 201)
    let chunked = try await CurlCommand.run("-T", film.path, "-H", "Transfer-Encoding: chunked", store.url("/put/a"))
    #expect(chunked.status == 204)
    store.options.honoursExpect = false
    let silent = try await CurlCommand.run("-T", film.path, "--expect100-timeout", "0.01", store.url("/put/b"))
    #expect(silent.status == 201)
    #expect(store.objects["put/a"]?.bytes == bytes && store.objects["put/b"]?.bytes == bytes)
    let part = try await CurlCommand.run("-r", "1000-1999", store.url("/put/a"))
    #expect(part.status == 206 && part.body == film.content.bytes(1000..<2000))
    let taken = try await CurlCommand.run("-T", film.path, "-H", "If-None-Match: *", store.url("/put/a"))
    #expect(taken.status == 412)
    let ranged = try await put(store.url("/put/c"), "abc", "Content-Range: bytes 3-5/6")
    #expect(ranged.status == 400 && store.objects["put/c"] == nil)
    let gone = try await CurlCommand.run("-X", "DELETE", store.url("/put/a"))
    #expect(gone.status == 204 && store.objects["put/a"] == nil)
  }

  @Test("digests in headers are verified: Content-MD5, the SHA-256 of the payload, CRCs")
  func digests() async throws {
    let store = try open()
    defer { store.close() }
    // Of "123456789", as the catalogue of CRCs has them.
    let known: [(StoreChecksum, String)] = [(.crc32, "y/Q5Jg=="), (.crc32c, "4waSgw=="), (.crc64nvme, "rosUhgp5mIg=")]
    for (kind, value) in known {
      let right = try await put(store.url("/films/a"), "123456789", "\(kind.header): \(value)")
      #expect(right.status == 200 && right[kind.header] == value, "\(kind)")
      let wrong = try await put(store.url("/films/b"), "12345678", "\(kind.header): \(value)")
      #expect(wrong.status == 400, "\(kind)")
    }
    let wrong = try await put(store.url("/films/b"), "123456789", "Content-MD5: \(StoreChecksum.md5.of([[1]]))")
    #expect(wrong.status == 400)
    let framed = try await put(store.url("/films/b"), "9;", "Content-Encoding: aws-chunked")
    #expect(framed.status == 501 && store.objects["films/b"] == nil)
  }

  @Test("the CRC of a whole is that of its parts", arguments: [StoreChecksum.crc32, .crc32c, .crc64nvme])
  func combined(_ kind: StoreChecksum) {
    let content = OriginContent(seed: 5)
    let parts = [content.bytes(0..<1), content.bytes(1..<70_000), [], content.bytes(70_000..<70_013)]
    let sums = parts.map { (kind.bytes(of: [$0]), Int64($0.count)) }
    #expect(kind.combined(sums) == kind.bytes(of: [content.bytes(0..<70_013)]))
  }

  @Test("a lost answer: the object is there and the client does not know")
  func lostAnswer() async throws {
    let store = try open()
    defer { store.close() }
    store.script { $0.ordinal == 1 ? [.closeAfterApplying] : [] }
    let lost = try await put(store.url("/films/a"), "abc")
    #expect(lost.exit == 52 && lost.status == 0)
    #expect(store.objects["films/a"]?.bytes == Array("abc".utf8))
    #expect(store.exchanges[0].wasApplied && store.exchanges[0].status == nil)
  }

  @Test("a connection ends before and within the body, and nothing is kept")
  func ends() async throws {
    let store = try open()
    defer { store.close() }
    let film = try Film(size: 8 << 20)
    store.script { $0.ordinal == 1 ? [.closeBeforeReading] : [.closeAfter(bytes: 1_000_000)] }
    for _ in 1...2 {
      let answer = try await CurlCommand.run("-T", film.path, store.url("/films/a"))
      #expect(answer.exit != 0 && answer.status != 200)
    }
    #expect(store.exchanges.map(\.bodyLength) == [0, 1_000_000])
    #expect(store.objects.isEmpty)
  }

  @Test("a body stops at a gate, and an answer at another")
  func gates() async throws {
    let store = try open()
    defer { store.close() }
    let film = try Film(size: 4 << 20)
    let (body, answer) = (OriginGate(), OriginGate())
    store.always(.putObject, .holdBody(after: 100_000, body), .holdAnswer(answer))
    async let sent = CurlCommand.run("-T", film.path, store.url("/films/a"))
    await body.reached()
    #expect(store.exchanges[0].bodyLength == 100_000 && store.objects.isEmpty)
    body.open()
    await answer.reached()
    #expect(store.objects["films/a"]?.size == film.size && store.exchanges[0].status == nil)
    answer.open()
    let status = try await sent.status
    #expect(status == 200)
  }

  @Test("what Complete answers instead: 412, 409 with and without the upload, 200 with an error, and the truth")
  func complete() async throws {
    let store = try open()
    defer { store.close() }
    let id = try await begin(store, parts: "ab", "cd")
    store.always(.completeUpload, .preconditionFailed412)
    let taken = try await complete(store, id)
    #expect(taken.status == 412)
    store.always(.completeUpload, .conflict409OnComplete(uploadIsGone: false))
    let conflict = try await complete(store, id)
    #expect(conflict.status == 409 && store.uploads[id] != nil)
    store.always(.completeUpload, .lieComplete200WithError())
    let lie = try await complete(store, id)
    #expect(lie.status == 200 && lie.text.contains("<Error>") && store.objects.isEmpty)
    store.script { _ in [] }
    store.put("films/a", bytes: [1])
    let held = try await complete(store, id, "If-None-Match: *")
    #expect(held.status == 412 && store.uploads[id] != nil)
    store.always(.completeUpload, .ignoreIfNoneMatch, .wrongETag)
    let done = try await complete(store, id, "If-None-Match: *")
    #expect(done.status == 200 && done.text.contains("bad&quot;</ETag>"))
    #expect(store.objects["films/a"]?.bytes == Array("abcd".utf8))
    store.always(.completeUpload, .conflict409OnComplete(uploadIsGone: true))
    let second = try await begin(store, parts: "ab")
    let gone = try await complete(store, second)
    #expect(gone.status == 409 && store.uploads.isEmpty)
  }

  @Test("parts must be equal and large enough where the store says so, and a part that was dropped is missed")
  func parts() async throws {
    let store = try open()
    defer { store.close() }
    store.options.wantsEqualParts = true
    let id = try await begin(store, parts: "abc", "de", "f")
    let unequal = try await complete(store, id)
    #expect(unequal.status == 400 && unequal.text.contains("same length"))
    store.options.wantsEqualParts = false
    store.options.minimumPartSize = 3
    let small = try await complete(store, id)
    #expect(small.status == 400 && small.text.contains("EntityTooSmall"))
    store.expire(id)
    let absent = try await complete(store, id)
    #expect(absent.status == 400 || absent.status == 404)
    store.always(.uploadPart, .dropPart)
    let dropped = try await begin(store, parts: "abc")
    #expect(store.exchanges(.uploadPart).last?.status == 200)
    #expect(store.uploads[dropped]?.parts.isEmpty == true)
  }

  @Test("lists of parts lie, and XML is cut or huge")
  func lists() async throws {
    let store = try open()
    defer { store.close() }
    let id = try await begin(store, parts: "ab", "cd", "ef")
    func list() async throws -> CurlCommand.Answer { try await CurlCommand.run(store.url("/films/a?uploadId=\(id)")) }
    func count(_ text: String) -> Int { text.split(separator: "<Part>", omittingEmptySubsequences: false).count - 1 }
    let all = try await list()
    #expect(count(all.text) == 3)
    store.always(.listParts, .listPartsMissing(2))
    let fewer = try await list()
    #expect(count(fewer.text) == 1)
    store.always(.listParts, .listPartsExtra)
    let more = try await list()
    #expect(count(more.text) == 4)
    store.always(.listParts, .truncatedXML)
    let cut = try await list()
    #expect(cut.exit == 0 && cut.body.count == all.body.count / 2)
    store.always(.listParts, .hugeXML(bytes: 1 << 22))
    let huge = try await list()
    #expect(huge.exit == 0 && huge.body.count == all.body.count + 1 << 22)
  }

  @Test("objects lose bytes and bits, and are not there though the answer says so")
  func damage() async throws {
    let store = try open()
    defer { store.close() }
    store.script {
      [[.truncateObject(by: 1)], [.corruptBit], [.completeButMissing], [.wrongETag, .wrongChecksumEcho]][$0.ordinal - 1]
    }
    for name in ["a", "b", "c", "d"] {
      let answer = try await put(store.url("/films/\(name)"), "abc", "x-amz-checksum-crc32: NSRBwg==")
      #expect(answer.status == 200)
      #expect((answer["ETag"] == "\"900150983cd24fb0d6963f7d28e17f72\"") == (name != "d"))
      #expect((answer["x-amz-checksum-crc32"] == "NSRBwg==") == (name != "d"))
    }
    #expect(
      store.objects.mapValues(\.bytes) == ["films/a": [97, 98], "films/b": [97, 98, 98], "films/d": [97, 98, 99]])
  }

  @Test("slow down, redirects and other answers come before the body where the client waits for 100")
  func refusals() async throws {
    let store = try open()
    defer { store.close() }
    let film = try Film(size: 4 << 20)
    store.script { $0.operation == .putObject ? [.slowDown(times: 2)] : [.redirect(to: "http://127.0.0.2/x")] }
    for status in [503, 503, 200] {
      let answer = try await CurlCommand.run("-T", film.path, store.url("/films/a"))
      #expect(answer.status == status)
    }
    #expect(store.exchanges.map(\.bodyLength) == [0, 0, film.size])
    let moved = try await CurlCommand.run(store.url("/films/a"))
    #expect(moved.status == 307 && moved["Location"] == "http://127.0.0.2/x")
    store.always(.put, .status(429, headers: [("Retry-After", "7")], body: "later"))
    let later = try await put(store.url("/put/a"), "abc")
    #expect(later.status == 429 && later["Retry-After"] == "7" && later.text == "later")
  }
}
