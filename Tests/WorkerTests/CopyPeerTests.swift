import ReelhaulCodec
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// Copies from and to the stores of others, read back by boto3.
@Suite("Copies between stores of others", .serialized)
struct CopyPeerTests {
  enum Peer: CaseIterable {
    case moto, rclone, seaweed
  }

  private static let film = OriginFile(seed: 1, size: 26 << 20)
  private static let short = OriginFile(seed: 2, size: 3 << 20)

  private static func start(_ peer: Peer) async throws -> (PeerProcess, S3Account) {
    switch peer {
    case .moto:
      let store = try await MotoStore.start()
      return (store.process, store.account)
    case .rclone:
      let store = try await RcloneStore.start()
      return (store.process, store.account)
    case .seaweed:
      let store = try await SeaweedStore.start()
      return (store.process, store.account)
    }
  }

  /// A store with two films at `films`, known to the bench as `peer` and `same`.
  private static func run(
    _ peer: Peer, _ body: (CopyBench, S3Reference) async throws -> Void
  ) async throws {
    let (process, account) = try await start(peer)
    defer { process.stop() }
    let boto = S3Reference(account)
    try await boto.createBucket("films")
    try await boto.createBucket("copies")
    try await CopyBench.run { bench in
      for (name, file) in [("film.mp4", film), ("short.mp4", short)] {
        let path = "\(bench.directory.path)/\(name)"
        try bench.write(file.bytes, to: path)
        try await boto.put("films", name, file: path, partSize: file.size > 8 << 20 ? 8 << 20 : nil)
      }
      let keys = CopyBench.keys(of: account.endpoint, account.accessKeyID, secret: account.secretAccessKey)
      let own = CopyBench.keys(of: bench.server.url(), "AKIAONE")
      try bench.write(Array(#"{"peer": \#(keys), "same": \#(keys), "one": \#(own)}"#.utf8), to: bench.credentials)
      try await body(bench, boto)
    }
  }

  private static func sha256(_ file: OriginFile) -> String {
    Hex.encode(file.content.sha256(size: file.size))
  }

  @Test("a store copies by itself, or the bytes go through the worker", arguments: Peer.allCases)
  func byStore(peer: Peer) async throws {
    try await Self.run(peer) { bench, boto in
      for (name, file) in [("film.mp4", Self.film), ("short.mp4", Self.short)] {
        let outcome = try await bench.run(
          bench.spec(.s3, .s3) {
            $0.source = "s3://films/\(name)"
            $0.destination = "s3://copies/by store \(name)".replacing(" ", with: "%20")
            $0.credential = "peer"
            $0.ifExists = .replace
            $0.parameters = Array(#"{"contentType":"video/mp4"}"#.utf8)
          })
        let output = try #require(outcome.output, "\(outcome)")
        #expect(output.bytes == file.size)
        let object = try await boto.get("copies", "by store \(name)")
        #expect(object.sha256 == Self.sha256(file) && object.contentType == "video/mp4")
        #expect(object.metadata["reelhaul-generation"] == "0")
        print("\(peer) \(name): \(output.verified) \(output.remark ?? "copied by the store")")
      }
      let open = try await boto.uploads("copies")
      #expect(open.isEmpty)
    }
  }

  @Test("an object goes through the worker to a store, a PUT and a tus server", arguments: Peer.allCases)
  func streamed(peer: Peer) async throws {
    try await Self.run(peer) { bench, boto in
      let places: [CopyPlace] = [.s3, .web, .tus, .storage]
      for to in places {
        let outcome = try await bench.run(
          bench.spec(.s3, to) {
            $0.credential = "peer"
            if to == .s3 { $0.parameters = Array(#"{"toCredential":"same","partSize":5242880}"#.utf8) }
          })
        #expect(outcome.output?.bytes == Self.film.size, "\(to): \(outcome)")
        if to != .s3 { #expect(try bench.bytes(at: to) == Self.film.bytes, "\(to)") }
      }
      let object = try await boto.get("copies", "film.mp4")
      #expect(object.sha256 == Self.sha256(Self.film))
    }
  }

  @Test("a copy between two stores goes on in another worker, without a second upload", arguments: Peer.allCases)
  func resumes(peer: Peer) async throws {
    try await Self.run(peer) { bench, boto in
      let run = try await bench.claim(
        bench.spec(.s3, .s3) {
          $0.credential = "peer"
          $0.parameters = Array(#"{"toCredential":"same","partSize":5242880}"#.utf8)
          $0.rate = 3 << 20
          $0.connections = 1
        })
      try await bench.interrupt(run, kills: true) {
        try await eventually("a part is sent") { run.ledger.bytesDone > 6 << 20 }
      }
      var next = try await bench.crash(run)
      next.claim.spec.rate = nil
      let outcome = await bench.run(next)
      #expect(outcome.output?.bytes == Self.film.size, "\(outcome)")
      let object = try await boto.get("copies", "film.mp4")
      #expect(object.sha256 == Self.sha256(Self.film))
      let open = try await boto.uploads("copies")
      #expect(open.isEmpty)
    }
  }
}
