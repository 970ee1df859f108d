import TestKit
import Testing

@Suite("The store's S3, as boto3 sees it")
struct S3StoreTests {
  @Test("a put is read back with its bytes, type and metadata")
  func put() async throws {
    let store = try StoreServer()
    defer { store.close() }
    let film = try Film(size: 300_000)
    let boto = S3Reference(store.account)
    try await boto.put("films", "a b/ü.mp4", file: film.path)
    let object = try await boto.get("films", "a b/ü.mp4")
    #expect(object.sha256 == film.sha256)
    #expect(object.contentType == "video/mp4")
    #expect(object.metadata == ["from": "boto3"])
    #expect(store.objects["films/a b/ü.mp4"]?.matches(film.content) == true)
    #expect(store.objects["films/a b/ü.mp4"]?.sha256 == film.sha256)
  }

  @Test("a multipart upload has the parts that were sent, in order, and leaves no upload")
  func multipart() async throws {
    let store = try StoreServer()
    defer { store.close() }
    let film = try Film(size: 17 << 20)
    let boto = S3Reference(store.account)
    try await boto.put("films", "a.mp4", file: film.path, partSize: 5 << 20)
    let stored = try #require(store.objects["films/a.mp4"])
    #expect(stored.pieces.map(\.size) == [5 << 20, 5 << 20, 5 << 20, 2 << 20])
    #expect(stored.etag.hasSuffix("-4\""))
    #expect(stored.matches(film.content))
    #expect(store.uploads.isEmpty)
    let object = try await boto.get("films", "a.mp4")
    #expect(object.sha256 == film.sha256)
    #expect(object.etag == stored.etag)
  }

  @Test("of large bodies only digests are kept, and these show a wrong object")
  func digests() async throws {
    var options = StoreOptions()
    options.keepsBodiesUpTo = 0
    let store = try StoreServer(options: options)
    defer { store.close() }
    let film = try Film(size: 11 << 20)
    try await S3Reference(store.account).put("films", "a.mp4", file: film.path, partSize: 5 << 20)
    let stored = try #require(store.objects["films/a.mp4"])
    #expect(stored.bytes == nil)
    #expect(stored.matches(film.content))
    #expect(!stored.matches(OriginContent(seed: 2)))
  }

  @Test("lists are paged: objects, uploads and parts")
  func lists() async throws {
    var options = StoreOptions()
    options.pageSize = 2
    let store = try StoreServer(options: options)
    defer { store.close() }
    for name in ["e", "b/2", "a", "b/1", "d&é"] { store.put("films/\(name)", bytes: [1]) }
    let boto = S3Reference(store.account)
    let keys = try await boto.list("films")
    #expect(keys == ["a", "b/1", "b/2", "d&é", "e"])
    let some = try await boto.list("films", prefix: "b/")
    #expect(some == ["b/1", "b/2"])
    for name in ["x", "x", "y", "w", "z"] { try await boto.run("begin_upload", "films", name) }
    let uploads = try await boto.uploads("films")
    #expect(uploads.map(\.key) == ["w", "x", "x", "y", "z"])
    #expect(Set(uploads.map(\.id)) == Set(store.uploads.keys))
    #expect(store.exchanges(.listObjects).count == 4 && store.exchanges(.listUploads).count == 3)
  }

  @Test("an open upload lists its parts until it is aborted")
  func parts() async throws {
    let store = try StoreServer()
    defer { store.close() }
    let film = try Film(size: 70_000)
    let boto = S3Reference(store.account)
    let id = try await boto.run("begin_upload", "films", "a", film.path)[0][0]
    let parts = try await boto.run("list_parts", "films", "a", id)
    #expect(parts.map { [$0[0], $0[1]] } == [["1", "70000"]])
    #expect(store.uploads[id]?.parts[1]?.size == 70_000)
    try await boto.run("abort_upload", "films", "a", id)
    #expect(store.uploads.isEmpty)
    await #expect(throws: TestFleetError.self) { try await boto.run("abort_upload", "films", "a", id) }
  }

  @Test("objects are deleted one by one and in bulk; versions stay behind their marker")
  func delete() async throws {
    let store = try StoreServer()
    defer { store.close() }
    for name in ["a", "b", "c"] { store.put("films/\(name)", bytes: [1]) }
    let boto = S3Reference(store.account)
    try await boto.delete("films", "a")
    #expect(store.objects.keys.sorted() == ["films/b", "films/c"])
    try await boto.delete("films", "b", "c", "absent")
    #expect(store.objects.isEmpty)
    store.options.hasVersions = true
    store.put("films/v", bytes: [1])
    store.put("films/v", bytes: [2])
    try await boto.delete("films", "v")
    #expect(store.objects["films/v"] == nil)
    #expect(store.versions("films/v").map { $0?.bytes } == [[1], [2], nil])
  }

  @Test("copies stay on the server, whole and in parts, from an object that needs no memory")
  func copy() async throws {
    let store = try StoreServer()
    defer { store.close() }
    store.put("films/zeros", zeros: 1 << 34)
    store.put("films/film", OriginContent(seed: 3), size: 12 << 20)
    let boto = S3Reference(store.account)
    try await boto.run("copy", "films", "whole", "film")
    try await boto.run("copy", "films", "parts", "film", "\(5 << 20)")
    try await boto.run("copy", "films", "more", "zeros", "\(1 << 32)")
    #expect(store.objects["films/whole"]?.matches(OriginContent(seed: 3)) == true)
    #expect(store.objects["films/parts"]?.matches(OriginContent(seed: 3)) == true)
    #expect(store.objects["films/more"]?.size == 1 << 34)
    #expect(store.exchanges(.uploadPartCopy).count == 7)
    #expect(store.bytesReceived < 10_000)
  }

  @Test("a stranger, another region, an ended token and another clock are refused")
  func authorization() async throws {
    let store = try StoreServer()
    defer { store.close() }
    store.put("films/a", bytes: [1])
    func statuses(_ account: S3Account) async -> [Int?] {
      let before = store.exchanges.count
      _ = try? await S3Reference(account).get("films", "a")
      return store.exchanges.dropFirst(before).map(\.status)
    }
    var account = store.account
    #expect(await statuses(account) == [200])
    account.accessKeyID = "AKIAOTHER"
    #expect(await statuses(account) == [403])
    account = store.account
    account.region = "eu-west-1"
    #expect(await statuses(account).first == 400)
    account = store.account
    account.sessionToken = "old"
    store.script { _ in [.expiredToken] }
    #expect(await statuses(account).last == 400)
    store.script { _ in [] }
    #expect(await statuses(account).last == 400)
    account.sessionToken = "new"
    #expect(await statuses(account) == [200])
    store.script { _ in [.clockSkew(seconds: 7200)] }
    #expect(await statuses(account) == [403])
    store.script { _ in [.clockSkew(seconds: 600)] }
    #expect(await statuses(account) == [200])
  }
}
