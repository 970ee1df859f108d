import TestKit
import Testing

@Suite("The store's tus, as tuspy and curl see it")
struct TusStoreTests {
  private let tus = ["-H", "Tus-Resumable: 1.0.0"]

  private func patch(_ url: String, _ offset: Int, _ text: String, _ header: String = "X: y") async throws
    -> CurlCommand.Answer
  {
    try await CurlCommand.run(
      "-X", "PATCH", "-H", "Tus-Resumable: 1.0.0", "-H", "Content-Type: application/offset+octet-stream", "-H",
      "Upload-Offset: \(offset)", "-H", header, "--data-binary", text, url)
  }

  private func create(_ store: StoreServer, _ headers: String...) async throws -> CurlCommand.Answer {
    var more = ["X-One: 1", "X-Two: 2"]
    more.replaceSubrange(0..<headers.count, with: headers)
    return try await CurlCommand.run(
      "-X", "POST", "-H", "Tus-Resumable: 1.0.0", "-H", more[0], "-H", more[1], store.url("/tus"))
  }

  private func offset(_ url: String) async throws -> String? {
    try await CurlCommand.run("-I", "-H", "Tus-Resumable: 1.0.0", url)["Upload-Offset"]
  }

  @Test("tuspy's upload in chunks is an object with its metadata")
  func tuspy() async throws {
    let store = try StoreServer()
    defer { store.close() }
    let film = try Film(size: 5 << 20)
    let url = try await TusReference.upload(film.path, to: store.url("/tus"), metadata: ["name": "ü"])
    let key = try #require(url.split(separator: "/").last.map { "tus/\($0)" })
    #expect(store.objects[key]?.matches(film.content) == true)
    #expect(store.objects[key]?.metadata == ["name": "ü"])
    #expect(store.exchanges(.tusPatch).count == 5)
    #expect(store.uploads.isEmpty)
    let there = try await TusReference.offset(url)
    #expect(there == 5 << 20)
    let body = try await CurlCommand.run(url).body
    #expect(body == film.content.bytes(0..<film.size))
  }

  @Test("a body that is cut keeps what arrived; another offset is a conflict")
  func cut() async throws {
    let store = try StoreServer()
    defer { store.close() }
    store.always(.tusPatch, .closeAfter(bytes: 4))
    let url = try #require(try await create(store, "Upload-Length: 8")["Location"])
    let answer = try await patch(url, 0, "abcdefgh")
    #expect(answer.exit != 0)
    try await eventually("the store has seen the end") { try await offset(url) == "4" }
    store.script { _ in [] }
    let conflict = try await patch(url, 0, "abcd")
    #expect(conflict.status == 409)
    let rest = try await patch(url, 4, "efgh")
    #expect(rest.status == 204 && rest["Upload-Offset"] == "8")
    #expect(store.objects.values.first?.bytes == Array("abcdefgh".utf8))
  }

  @Test("a checksum that does not fit is 460 and changes nothing")
  func checksum() async throws {
    let store = try StoreServer()
    defer { store.close() }
    let url = try #require(try await create(store, "Upload-Length: 9")["Location"])
    for kind in [StoreChecksum.sha1, .sha256, .crc32] {
      let wrong = try await patch(url, 0, "123456789", "Upload-Checksum: \(kind) \(kind.of([[1]]))")
      #expect(wrong.status == 460)
    }
    #expect(try await offset(url) == "0")
    // The CRC-32 of "123456789" is CBF43926.
    let right = try await patch(url, 0, "123456789", "Upload-Checksum: crc32 y/Q5Jg==")
    #expect(right.status == 204)
  }

  @Test("parts are joined, and an upload is ended")
  func concatenation() async throws {
    let store = try StoreServer()
    defer { store.close() }
    var urls: [String] = []
    for text in ["abc", "def"] {
      let url = try #require(try await create(store, "Upload-Length: 3", "Upload-Concat: partial")["Location"])
      _ = try await patch(url, 0, text)
      urls.append(url)
    }
    let final = try #require(
      try await create(store, "Upload-Concat: final;\(urls.joined(separator: " "))")["Location"])
    let joined = try await CurlCommand.run(final).text
    #expect(joined == "abcdef")
    for url in urls + [final] {
      let ended = try await CurlCommand.run("-X", "DELETE", tus[0], tus[1], url)
      #expect(ended.status == 204)
    }
    #expect(store.uploads.isEmpty && store.objects.isEmpty)
  }

  @Test("offsets fall and lie ahead, uploads are locked and gone, locations lie")
  func faults() async throws {
    let store = try StoreServer()
    defer { store.close() }
    let url = try #require(try await create(store, "Upload-Length: 8")["Location"])
    _ = try await patch(url, 0, "abcdef")
    store.always(.tusHead, .offsetAhead(by: 3))
    #expect(try await offset(url) == "9")
    store.script { $0.operation == .tusHead && $0.ordinal == 2 ? [.offsetFalls(by: 2)] : [] }
    #expect(try await offset(url) == "4")
    #expect(try await offset(url) == "4")
    store.always(.tusPatch, .locked423(times: 2))
    let locked = try await patch(url, 4, "efgh")
    #expect(locked.status == 423)
    store.always(.tusPatch, .completeButMissing)
    let last = try await patch(url, 4, "efgh")
    #expect(last.status == 204 && store.objects.isEmpty)
    #expect(try await offset(url) == "8")
    store.always(.tusHead, .gone410)
    #expect(try await offset(url) == nil)
    #expect(store.uploads.isEmpty)
    store.always(.tusCreate, .locationOnOtherHost("http://127.0.0.2:1"))
    let other = try await create(store, "Upload-Length: 8")
    #expect(other["Location"]?.hasPrefix("http://127.0.0.2:1/tus/") == true)
    store.always(.tusCreate, .noLocation)
    let none = try await create(store, "Upload-Length: 8")
    #expect(none.status == 201 && none["Location"] == nil)
    store.always(.tusCreate, .maxSize(7))
    let large = try await create(store, "Upload-Length: 8")
    #expect(large.status == 413)
  }
}
