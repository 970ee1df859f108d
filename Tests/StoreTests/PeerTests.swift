import TestKit
import Testing

@Suite("Peers start, take objects and give them back")
struct PeerTests {
  private func roundTrip(_ account: S3Account) async throws {
    let film = try Film(size: 11 << 20)
    let boto = S3Reference(account)
    try await boto.createBucket("films")
    try await boto.put("films", "one.mp4", file: film.path)
    try await boto.put("films", "parts.mp4", file: film.path, partSize: 5 << 20)
    for key in ["one.mp4", "parts.mp4"] {
      let object = try await boto.get("films", key)
      #expect(object.sha256 == film.sha256, "\(key)")
      #expect(object.metadata["from"] == "boto3", "\(key)")
    }
    let keys = try await boto.list("films")
    #expect(keys == ["one.mp4", "parts.mp4"])
    try await boto.delete("films", "one.mp4", "parts.mp4")
    let none = try await boto.list("films")
    #expect(none == [])
  }

  @Test("rclone's S3, which refuses another secret")
  func rclone() async throws {
    let store = try await RcloneStore.start()
    defer { store.process.stop() }
    try await roundTrip(store.account)
    var stranger = store.account
    stranger.secretAccessKey = "another"
    await #expect(throws: TestFleetError.self) { try await S3Reference(stranger).list("films") }
  }

  @Test("moto's S3")
  func moto() async throws {
    let store = try await MotoStore.start()
    defer { store.process.stop() }
    try await roundTrip(store.account)
  }

  @Test("SeaweedFS's S3, which refuses another secret, and its tus")
  func seaweed() async throws {
    let store = try await SeaweedStore.start()
    defer { store.process.stop() }
    try await roundTrip(store.account)
    var stranger = store.account
    stranger.secretAccessKey = "another"
    await #expect(throws: TestFleetError.self) { try await S3Reference(stranger).list("films") }
    let film = try Film(size: 3 << 20)
    _ = try await TusReference.upload(film.path, to: store.tusURL + "/films/tus.mp4")
    let read = try await CurlCommand.run(store.filerURL + "/films/tus.mp4")
    #expect(read.body == film.content.bytes(0..<film.size))
  }

  @Test("other tus servers", arguments: TusServer.Kind.allCases)
  func tus(_ kind: TusServer.Kind) async throws {
    let server = try await TusServer.start(kind)
    defer { server.process.stop() }
    let film = try Film(size: 3 << 20)
    let url = try await TusReference.upload(film.path, to: server.url, metadata: ["filename": "film.mp4"])
    #expect(url.hasPrefix(server.process.url()))
    let file = try #require(try server.files().first { $0.count == film.size })
    #expect(file == film.content.bytes(0..<film.size))
  }

  @Test("nginx takes a PUT")
  func nginx() async throws {
    let server = try await NginxDAV.start()
    defer { server.stop() }
    let film = try Film(size: 1 << 20)
    let answer = try await CurlCommand.run("-T", film.path, server.url("/new/film.mp4"))
    #expect(answer.status == 201)
    let read = try await CurlCommand.run(server.url("/new/film.mp4"))
    #expect(read.body == film.content.bytes(0..<film.size))
    let gone = try await CurlCommand.run("-X", "DELETE", server.url("/new/film.mp4"))
    #expect(gone.status == 204)
  }
}
