import Glibc
import ReelhaulCodec
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Uploads to servers of others, read back by clients of others.
@Suite(.serialized) struct UploadPeerTests {
  private static let part: Int64 = 5 << 20

  private static func bytes(_ count: Int64, seed: UInt64 = 7) -> [UInt8] { OriginContent(seed: seed).bytes(0..<count) }

  private static func sha256(_ bytes: [UInt8]) -> String { Hex.encode(digest(.sha256, of: bytes)) }

  @Test("files without bytes, of one request and of several parts arrive", arguments: UploadPeer.Kind.allCases)
  func arrives(kind: UploadPeer.Kind) async throws {
    try await UploadPeer.run(kind) { peer, harness in
      for size in [0, 100_000, 3 * Self.part + 1] {
        let bytes = Self.bytes(size)
        unlink(harness.sourcePath)
        try harness.put(bytes)
        let spec = peer.spec("\(size).mp4", partSize: Self.part)
        let outcome = await harness.run(spec)
        let object = try #require(outcome.object, "\(outcome)")
        #expect(object.size ?? size == size)
        let there = try await peer.read("\(size).mp4")
        let file = there.first { $0.sha256 == Self.sha256(bytes) }
        #expect(file != nil, "\(size) bytes")
        #expect(!kind.isS3 || file?.task == "\(spec.id)")
        // rclone ignores conditions.
        #expect(!kind.isS3 || kind == .rclone || object.remark == nil)
        #expect(kind != .rclone || object.remark?.contains("does not look") == true)
        if kind.isS3, size > 0 { #expect(object.verified == .crc32c || object.verified == .md5) }
      }
      let open = try await peer.uploads()
      #expect(open == [])
    }
  }

  @Test("a file arrives that is sent with its creation", arguments: [UploadPeer.Kind.seaweedTus, .tuspyserver, .tussi])
  func createdWhole(kind: UploadPeer.Kind) async throws {
    try await UploadPeer.run(kind) { peer, harness in
      let bytes = Self.bytes(Self.part)
      try harness.put(bytes)
      var spec = peer.spec("film.mp4", partSize: Self.part)
      spec.parameters = Array(#"{"creationWithUpload":true}"#.utf8)
      // There alone it tells what it can.
      if kind == .tuspyserver { spec.destination? += "/" }
      let isWhole = Lock(false)
      let ledger = UploadRecordingLedger { checkpoint in
        if checkpoint.session != nil, checkpoint.done.isEmpty, checkpoint.isPublishing {
          isWhole.withLock { $0 = true }
        }
      }
      let outcome = await harness.run(spec, ledger: ledger)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(kind != .tuspyserver || isWhole.withLock { $0 }, "it takes the file with the creation")
      let there = try await peer.read("film.mp4")
      #expect(there.filter { $0.sha256 == Self.sha256(bytes) }.count == 1)
    }
  }

  @Test(
    "a stopped upload is continued, and what the server has is not sent again", arguments: UploadPeer.Kind.allCases)
  func resumes(kind: UploadPeer.Kind) async throws {
    try await UploadPeer.run(kind) { peer, harness in
      let bytes = Self.bytes(6 * Self.part + 1)
      try harness.put(bytes)
      var spec = peer.spec("film.mp4", partSize: Self.part)
      spec.connections = 1
      spec.rate = Self.part
      let ledger = UploadRecordingLedger()
      let run = Task { [spec] in await harness.run(spec, ledger: ledger) }
      try await eventually("more than two parts are sent") { peer.bytesSent > Self.part * 5 / 2 }
      run.cancel()
      #expect(await run.value == .stopped)
      let session = try #require(ledger.last?.session)
      // A server goes on writing what it had received, and may stand still in between while it syncs.
      var (has, repeats) = (Int64(-1), 0)
      try await eventually("the server has written what it received", every: .milliseconds(500)) {
        let former = has
        has = try await peer.acknowledged(session)
        repeats = has == former ? repeats + 1 : 0
        return repeats == 3
      }
      #expect(!kind.resumes || has >= 2 * Self.part)
      let before = peer.bytesSent
      spec.rate = nil
      var second = UploadRecordingLedger()
      var outcome = await harness.run(spec, from: ledger.last, ledger: second)
      // A server that has not noticed the end of the request yet keeps its lock for a moment (423): the task then waits.
      for _ in 0..<200 where outcome.failure?.class == .wait {
        try await Task.sleep(for: .milliseconds(100))
        second = UploadRecordingLedger()
        outcome = await harness.run(spec, from: ledger.last, ledger: second)
      }
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(second.progress.first == has)
      let sent = peer.bytesSent - before
      #expect(sent < Int64(bytes.count) - has + 64 << 10, "\(sent) bytes after \(has)")
      let there = try await peer.read("film.mp4")
      #expect(there.contains { $0.sha256 == Self.sha256(bytes) })
      let open = try await peer.uploads()
      #expect(open == [])
    }
  }

  @Test(
    "an object that exists is kept, skipped or replaced", arguments: UploadPeer.Kind.allCases.filter { $0.hasNames })
  func existing(kind: UploadPeer.Kind) async throws {
    try await UploadPeer.run(kind) { peer, harness in
      for size in [1000, 2 * Self.part] {
        let (old, new) = (Self.bytes(2000, seed: 3), Self.bytes(size))
        unlink(harness.sourcePath)
        try harness.put(old)
        _ = await harness.run(peer.spec("film-\(size)", partSize: Self.part))
        unlink(harness.sourcePath)
        try harness.put(new)
        for ifExists in [IfExists.fail, .skip, .replace] {
          var spec = peer.spec("film-\(size)", partSize: Self.part)
          spec.ifExists = ifExists
          let outcome = await harness.run(spec)
          if ifExists == .fail {
            #expect(outcome.failure?.code == .destinationExists && outcome.failure?.class == .fail, "\(outcome)")
          } else {
            #expect(outcome.failure == nil, "\(outcome)")
          }
          let there = try await peer.read("film-\(size)")
          #expect(
            there.map(\.sha256) == [Self.sha256(ifExists == .replace ? new : old)], "\(ifExists) of \(size) bytes")
        }
      }
      let open = try await peer.uploads()
      #expect(open == [])
    }
  }

  @Test("a canceled upload is given up, and nothing of it is left", arguments: UploadPeer.Kind.allCases)
  func givenUp(kind: UploadPeer.Kind) async throws {
    try await UploadPeer.run(kind) { peer, harness in
      try harness.put(Self.bytes(4 * Self.part))
      var spec = peer.spec("film.mp4", partSize: Self.part)
      spec.rate = Self.part
      let ledger = UploadRecordingLedger()
      let run = Task { [spec] in await harness.run(spec, ledger: ledger) }
      try await eventually("a part is sent") { peer.bytesSent > Self.part * 3 / 2 }
      run.cancel()
      #expect(await run.value == .stopped)
      let checkpoint = try #require(ledger.last)
      // A clean-up may be repeated, and is until the server has noticed that the connection has ended.
      for _ in 0..<2 {
        try await eventually("the server lets go of it") {
          do {
            try await harness.engine.abort(spec, from: checkpoint)
            return true
          } catch let failure as TaskFailure where failure.code == .http(423) {
            return false
          }
        }
      }
      // It cannot be told to forget.
      guard kind != .tussi else { return }
      let open = try await peer.uploads()
      #expect(open == [])
      let there = try await peer.read("film.mp4")
      #expect(there.allSatisfy { $0.size < 10_000 }, "a server may keep a note")
      if kind.resumes, !kind.isS3 {
        let has = try? await peer.acknowledged(checkpoint.session ?? [])
        #expect(has == nil)
      }
    }
  }
}

/// A server of others behind a proxy that counts.
struct UploadPeer: Sendable {
  enum Kind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case rclone, seaweed, moto, seaweedTus, tuspyserver, tussi, nginx

    var testDescription: String { rawValue }
    var isS3: Bool { [.rclone, .seaweed, .moto].contains(self) }
    var resumes: Bool { self != .nginx }
    /// Whether the client chooses where an upload ends.
    var hasNames: Bool { isS3 || self == .nginx }
  }

  struct File: Hashable {
    var sha256: String
    var size: Int64
    /// The task that the server says it is from.
    var task: String?
  }

  private enum Server {
    case s3(PeerProcess, S3Account)
    case seaweedTus(SeaweedStore)
    case tus(TusServer)
    case nginx(NginxDAV)

    /// Where clients of others reach it: `http://127.0.0.1:PORT/PATH`.
    var url: String {
      switch self {
      case .s3(_, let account): account.endpoint
      case .seaweedTus(let store): store.tusURL
      case .tus(let server): server.url
      case .nginx(let server): server.url("")
      }
    }
  }

  private static let bucket = "films"

  let kind: Kind
  private let server: Server
  private let proxy: CuttingProxy

  static func run(_ kind: Kind, _ body: (UploadPeer, UploadHarness) async throws -> Void) async throws {
    let server: Server
    switch kind {
    case .rclone:
      let store = try await RcloneStore.start()
      server = .s3(store.process, store.account)
    case .seaweed:
      let store = try await SeaweedStore.start()
      server = .s3(store.process, store.account)
    case .moto:
      let store = try await MotoStore.start()
      server = .s3(store.process, store.account)
    case .seaweedTus: server = .seaweedTus(try await SeaweedStore.start())
    case .tuspyserver: server = .tus(try await TusServer.start(.tuspyserver))
    case .tussi: server = .tus(try await TusServer.start(.tussi))
    case .nginx: server = .nginx(try await NginxDAV.start())
    }
    let port = server.url.split(separator: ":")[2].prefix { $0 != "/" }
    let peer = UploadPeer(kind: kind, server: server, proxy: try CuttingProxy(to: UInt16(port) ?? 0))
    var account: S3Account?
    if case .s3(_, var own) = server {
      try await S3Reference(own).createBucket(bucket)
      own.endpoint = "http://127.0.0.1:\(peer.proxy.port)"
      account = own
    }
    defer { peer.stop() }
    try await UploadHarness.run(account: account) { try await body(peer, $0) }
  }

  private func stop() {
    proxy.close()
    switch server {
    case .s3(let process, _): process.stop()
    case .seaweedTus(let store): store.process.stop()
    case .tus(let server): server.process.stop()
    case .nginx(let server): server.stop()
    }
  }

  /// All bytes that the product has sent.
  var bytesSent: Int64 { proxy.bytesSent }

  /// An upload to a name.
  func spec(_ name: String, partSize: Int64) -> TaskSpec {
    let path = server.url.split(separator: "/", maxSplits: 2).dropFirst(2).map { "/\($0)" }.joined()
    let base = "http://127.0.0.1:\(proxy.port)\(path)"
    let place =
      switch server {
      case .s3: "s3://\(Self.bucket)/\(name)"
      case .seaweedTus: "tus+\(base)/\(name)"
      case .tus: "tus+\(base)"
      case .nginx: "\(base)/\(name)"
      }
    var spec = TaskSpec(id: .random(), kind: .upload, source: UploadHarness.source, destination: place)
    if kind.isS3 { spec.credential = "s3" }
    if kind != .nginx { spec.parameters = Array(#"{"partSize":\#(partSize)}"#.utf8) }
    return spec
  }

  /// The file of this name, as a client of others reads it, if there is one; all files where the server chooses names.
  func read(_ name: String) async throws -> [File] {
    switch server {
    case .s3(_, let account):
      let boto = S3Reference(account)
      guard try await boto.list(Self.bucket).contains(name) else { return [] }
      let object = try await boto.get(Self.bucket, name)
      return [File(sha256: object.sha256, size: object.size, task: object.metadata["reelhaul-task"])]
    case .seaweedTus(let store): return try await curl("\(store.filerURL)/\(name)")
    case .nginx(let nginx): return try await curl(nginx.url("/\(name)"))
    case .tus(let server): return try server.files().map(File.init)
    }
  }

  private func curl(_ url: String) async throws -> [File] {
    let answer = try await CurlCommand.run(url)
    guard answer.status != 404 else { return [] }
    guard answer.status == 200 else { throw TestFleetError("\(url): \(answer.status)") }
    return [File(answer.body)]
  }

  /// The keys of multipart uploads that are open.
  func uploads() async throws -> [String] {
    guard case .s3(_, let account) = server else { return [] }
    return try await S3Reference(account).uploads(Self.bucket).map(\.key)
  }

  /// How much the server has of an upload, as a client of others learns it.
  func acknowledged(_ session: [UInt8]) async throws -> Int64 {
    switch server {
    case .s3(_, let account):
      let boto = S3Reference(account)
      var size: Int64 = 0
      for (key, id) in try await boto.uploads(Self.bucket) {
        for part in try await boto.run("list_parts", Self.bucket, key, id) { size += Int64(part[1]) ?? 0 }
      }
      return size
    case .seaweedTus, .tus:
      let text = String(decoding: session, as: UTF8.self)
      let url = text.split(separator: "\"").first { $0.hasPrefix("http") }
      return try await TusReference.offset(url.map(String.init) ?? "") ?? -1
    case .nginx: return 0
    }
  }
}

extension UploadPeer.File {
  init(_ bytes: [UInt8]) {
    self.init(sha256: Hex.encode(digest(.sha256, of: bytes)), size: Int64(bytes.count))
  }
}
