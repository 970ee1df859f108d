import Glibc
import ReelhaulClient
import ReelhaulCodec
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// The death of workers during uploads and copies, and what people do to them.
@Suite(.serialized) struct UploadKillTests {
  // MARK: Killed

  @Test(
    "an upload to S3, one to tus and a copy to S3 survive ten kills of their workers each: nothing that the server has is sent again, and nothing is left over"
  )
  func tenKills() async throws {
    try await UploadFleet.run(workers: 4) { uploads in
      let size: Int64 = 20 * UploadFleet.part
      let film = try uploads.putSource(size: size)
      uploads.fleet.origin.serve("/film.mp4", OriginFile(seed: film.seed, size: size))
      let end = uploads.holdEnd(of: size)
      let tasks = try await [
        uploads.submit(.upload, to: "s3://films/upload.mp4") { $0.rate = 60_000_000 },
        uploads.submit(.copy, to: "s3://films/copy.mp4") { spec in
          spec.source = uploads.fleet.origin.url("/film.mp4")
          spec.rate = 60_000_000
        },
        uploads.submit(.upload, to: "tus+\(uploads.store.url("/tus"))") { $0.rate = 60_000_000 },
      ]
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in tasks { group.addTask { try await uploads.killOwner(of: task, times: 10) } }
        try await group.waitForAll()
      }
      end.open()
      let sha256 = Hex.encode(film.sha256(size: size))
      var epochs: [Int] = []
      for task in tasks {
        let document = try await uploads.fleet.wait(for: task, .succeeded)
        #expect(document.bytesDone == size)
        epochs.append(document.epoch)
      }
      let boto = S3Reference(uploads.store.account)
      for key in ["upload.mp4", "copy.mp4"] {
        let object = try await boto.get("films", key)
        #expect(object.sha256 == sha256 && object.size == size, "\(key)")
        #expect(uploads.store.exchanges(.createUpload).count { $0.request.objectKey == key } == 1, "\(key)")
      }
      let open = try await boto.uploads("films").map(\.key)
      #expect(open == [])
      // Parts of one file, and the file.
      let files = uploads.store.exchanges(.tusCreate)
      #expect(files.count { $0.request["upload-concat"]?.hasPrefix("final") == true } == 1)
      #expect(files.count == 3)
      let location = try #require(document(of: try await uploads.fleet.store.task(tasks[2])))
      let read = try await CurlCommand.run(location)
      #expect(Hex.encode(digest(.sha256, of: read.body)) == sha256)
      // What was taken is never sent again, and what was cut off is at most one part of each connection.
      let sent = [
        uploads.store.exchanges(.uploadPart).filter { $0.request.objectKey == "upload.mp4" },
        uploads.store.exchanges(.uploadPart).filter { $0.request.objectKey == "copy.mp4" },
        uploads.store.exchanges(.tusPatch),
      ]
      for (exchanges, epoch) in zip(sent, epochs) {
        let taken = exchanges.filter(\.wasApplied).map { "\($0.request.target) \($0.request["upload-offset"] ?? "")" }
        #expect(taken.count == Int(size / UploadFleet.part) && Set(taken).count == taken.count)
        let again = exchanges.filter { !$0.wasApplied }.reduce(0) { $0 + $1.bodyLength }
        #expect(again <= Int64(epoch) * Int64(UploadFleet.connections) * UploadFleet.part, "\(again) bytes sent again")
      }
      #expect(try await uploads.fleet.problemsOfEvents() == [])
      #expect(try await uploads.fleet.store.audit() == [])
    }
  }

  private func document(of task: TaskDocument?) throws -> String? {
    try task?.output.map { try UploadOutput(json: $0).location }
  }

  @Test(
    "a worker that is killed before it records what the store has done leaves one object and no upload",
    arguments: [StoreOperation.createUpload, .uploadPart, .completeUpload])
  func lostRecord(operation: StoreOperation) async throws {
    try await UploadFleet.run(workers: 1, leaseSeconds: 15) { uploads in
      let size: Int64 = 3 * UploadFleet.part
      let film = try uploads.putSource(size: size)
      let gate = OriginGate()
      // The first end asks whether the store looks at conditions, and does nothing.
      let ordinal = operation == .completeUpload ? 2 : 1
      uploads.store.script { $0.operation == operation && $0.ordinal == ordinal ? [.holdAnswer(gate)] : [] }
      let task = try await uploads.submit(.upload, to: "s3://films/film.mp4")
      _ = await uploads.store.first { $0.operation == operation && $0.wasApplied }
      try await uploads.fleet.endLease(of: uploads.strikeOwner(of: task, SIGKILL))
      try uploads.fleet.startWorker()
      try await uploads.fleet.wait(for: task, .succeeded)
      gate.open()
      let boto = S3Reference(uploads.store.account)
      let object = try await boto.get("films", "film.mp4")
      #expect(object.sha256 == Hex.encode(film.sha256(size: size)))
      let open = try await boto.uploads("films").map(\.key)
      #expect(open == [])
      #expect(uploads.store.exchanges(.completeUpload).count { $0.wasApplied } == 1)
      #expect(uploads.store.exchanges(.uploadPart).count { $0.wasApplied } == 3)
      #expect(uploads.store.versions("films/film.mp4").count <= 1)
    }
  }

  @Test("an upload that was canceled after its worker died, before it was recorded, is given up")
  func canceledUnrecorded() async throws {
    try await UploadFleet.run(workers: 1) { uploads in
      _ = try uploads.putSource(size: 3 * UploadFleet.part)
      let gate = OriginGate()
      uploads.store.always(.createUpload, .holdAnswer(gate))
      let task = try await uploads.submit(.upload, to: "s3://films/film.mp4")
      _ = await uploads.store.first { $0.operation == .createUpload && $0.wasApplied }
      try await uploads.strikeOwner(of: task, SIGKILL)
      try await uploads.fleet.client.cancel(task)
      try uploads.fleet.startWorker()
      try await uploads.fleet.wait(for: task, .canceled)
      try await uploads.fleet.eventually("it is given up") { uploads.store.uploads.isEmpty }
      gate.open()
    }
  }

  // MARK: Stopped and woken

  @Test(
    "a worker that wakes up after its lease changes nothing of an upload",
    arguments: ["s3://films/film.mp4", "tus"])
  func zombie(place: String) async throws {
    try await UploadFleet.run(workers: 2, leaseSeconds: 9) { uploads in
      let size: Int64 = 4 * UploadFleet.part
      let film = try uploads.putSource(size: size)
      let end = uploads.holdEnd(of: size)
      let task = try await uploads.submit(
        .upload, to: place == "tus" ? "tus+\(uploads.store.url("/tus"))" : place)
      let isHeld: @Sendable (StoreExchange) -> Bool = { uploads.isEnd($0.request, of: size) }
      _ = await uploads.store.first(where: isHeld)
      let first = try #require(try await uploads.fleet.store.task(task))
      let owner = try await uploads.strikeOwner(of: task, SIGSTOP)
      // On a slow machine it may have sent its end again, because nobody reads it.
      let former = uploads.store.exchanges.count(where: isHeld)
      try await uploads.fleet.wait(for: task, "a take-over") { $0.epoch > first.epoch && $0.state == .running }
      // It sends several parts at once, and the end may come before others.
      try await eventually("the new owner has sent all and waits for the end") {
        let exchanges = uploads.store.exchanges
        let taken = exchanges.filter { $0.wasApplied && [.uploadPart, .tusPatch].contains($0.operation) }
          .map { $0.request["upload-offset"] ?? "\($0.request.partNumber ?? 0)" }
        return Set(taken).count == 3 && exchanges.count(where: isHeld) > former
      }
      let before = uploads.store.exchanges.count
      owner.kill(SIGCONT)
      // Its run has ended when its drain has.
      owner.kill(SIGTERM)
      #expect(await owner.wait() == .exited(0))
      let more = uploads.store.exchanges.dropFirst(before).map { "\($0.request.method) \($0.request.target)" }
      #expect(more.isEmpty, "the woken worker asks for something")
      let current = try #require(try await uploads.fleet.store.task(task))
      #expect(current.state == .running && current.epoch == first.epoch + 1)
      end.open()
      try await uploads.fleet.wait(for: task, .succeeded)
      let object = uploads.store.objects.values.first { $0.size == size }
      #expect(object?.bytes.map { digest(.sha256, of: $0) } == film.sha256(size: size))
      #expect(uploads.store.exchanges(.abortUpload).isEmpty && uploads.store.exchanges(.tusDelete).isEmpty)
      #expect(uploads.store.exchanges(.completeUpload).count(where: \.wasApplied) == (place == "tus" ? 0 : 1))
    }
  }

  // MARK: Commands

  @Test(
    "a paused upload sends nothing and goes on where it was, and a canceled one is given up, also after its pause",
    arguments: [false, true])
  func commands(cancelsWhilePaused: Bool) async throws {
    try await UploadFleet.run(workers: 2, leaseSeconds: 15) { uploads in
      _ = try uploads.putSource(size: 16 * UploadFleet.part)
      let task = try await uploads.submit(.upload, to: "s3://films/film.mp4") { $0.rate = UploadFleet.part }
      let taken: @Sendable (StoreExchange) -> Bool = { $0.operation == .uploadPart && $0.wasApplied }
      _ = await uploads.store.first(where: taken)

      try await uploads.fleet.client.pause(task)
      try await uploads.fleet.wait(for: task, .paused)
      try await uploads.fleet.eventually("its requests have ended") {
        uploads.store.exchanges.allSatisfy(\.isFinished)
      }
      let before = uploads.store.exchanges
      try await uploads.fleet.loop.sleep(for: .milliseconds(500))
      #expect(uploads.store.exchanges.count == before.count)
      #expect(uploads.store.uploads.count == 1)

      if !cancelsWhilePaused {
        try await uploads.fleet.client.resume(task)
        try await uploads.fleet.eventually("another part is taken") {
          uploads.store.exchanges.count(where: taken) > before.count(where: taken)
        }
        #expect(uploads.store.exchanges(.createUpload).count == 1)
        let parts = uploads.store.exchanges.filter(taken).map(\.request.target)
        #expect(Set(parts).count == parts.count)
      }
      try await uploads.fleet.client.cancel(task)
      try await uploads.fleet.wait(for: task, .canceled)
      try await uploads.fleet.eventually("the upload is given up") { uploads.store.uploads.isEmpty }
      let boto = S3Reference(uploads.store.account)
      let (open, keys) = try await (boto.uploads("films").map(\.key), boto.list("films"))
      #expect(open == [] && keys == [])
      try await uploads.fleet.eventually("its clean-up is over") {
        try await uploads.fleet.pool.query("select from cleanup").isEmpty
      }
      #expect(try await uploads.fleet.store.audit() == [])
    }
  }

  // MARK: Real servers

  @Test(
    "1 GiB reaches SeaweedFS through ten kills, with S3, with tus and as a copy", .enabled(if: LongTests.areWanted))
  func tenKillsOfReal() async throws {
    let seaweed = try await SeaweedStore.start()
    defer { seaweed.process.stop() }
    let boto = S3Reference(seaweed.account)
    try await boto.createBucket("films")
    try await UploadFleet.run(workers: 4, account: seaweed.account) { uploads in
      let size: Int64 = 1 << 30
      let film = try uploads.putSource(size: size)
      uploads.fleet.origin.serve("/film.mp4", OriginFile(seed: film.seed, size: size))
      let rate: Int64 = 80_000_000
      let tasks = try await [
        uploads.submit(.upload, to: "s3://films/upload.mp4") { $0.rate = rate },
        uploads.submit(.copy, to: "s3://films/copy.mp4") { spec in
          spec.source = uploads.fleet.origin.url("/film.mp4")
          spec.rate = rate
        },
        uploads.submit(.upload, to: "tus+\(seaweed.tusURL)/tus.mp4") { $0.rate = rate },
      ]
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in tasks { group.addTask { try await uploads.killOwner(of: task, times: 10) } }
        try await group.waitForAll()
      }
      try await uploads.fleet.waitForSuccess(of: tasks)
      let sha256 = Hex.encode(film.sha256(size: size))
      for key in ["upload.mp4", "copy.mp4"] {
        let object = try await boto.get("films", key)
        #expect(object.sha256 == sha256, "\(key)")
      }
      let read = try await CurlCommand.run("\(seaweed.filerURL)/tus.mp4")
      #expect(Hex.encode(digest(.sha256, of: read.body)) == sha256)
      let open = try await boto.uploads("films").map(\.key)
      #expect(open == [])
    }
  }
}

/// A fleet with a file to upload and a store that counts what it receives. A worker runs one task.
private final class UploadFleet: Sendable {
  /// The bytes of a part.
  static let part: Int64 = 8 << 20
  static let connections = 4

  let fleet: TestFleet
  let store: StoreServer

  private init(workers: Int, leaseSeconds: Int, account: S3Account?) async throws {
    store = try StoreServer(receiveBuffer: 64 << 10)
    let directory = try TemporaryDirectory(prefix: "reelhaul-keys")
    try (account ?? store.account).writeCredentials(to: "\(directory.path)/credentials.json")
    keys = directory
    fleet = try await TestFleet.start(
      workers: workers, leaseSeconds: leaseSeconds,
      environment: ["REELHAUL_CREDENTIALS": "\(directory.path)/credentials.json", "REELHAUL_CONCURRENCY": "1"])
  }

  private let keys: TemporaryDirectory

  static func run(
    workers: Int, leaseSeconds: Int = 3, account: S3Account? = nil, _ body: (UploadFleet) async throws -> Void
  ) async throws {
    let uploads = try await UploadFleet(workers: workers, leaseSeconds: leaseSeconds, account: account)
    let result: Result<Void, any Error>
    do {
      try await body(uploads)
      result = .success(())
    } catch {
      result = .failure(error)
    }
    await uploads.fleet.stop()
    uploads.store.close()
    try result.get()
  }

  /// Writes `storage://default/film.mp4`.
  func putSource(size: Int64) throws -> OriginContent {
    let content = OriginContent(seed: .random(in: 1...1000))
    let file = try FileDescriptor.open(fleet.path("/film.mp4"), O_WRONLY | O_CREAT | O_CLOEXEC)
    for start in stride(from: 0, to: size, by: 1 << 20) {
      try content.bytes(start..<min(size, start + 1 << 20)).withUnsafeBytes { try file.write($0, at: start) }
    }
    return content
  }

  func submit(
    _ kind: TaskKind, to destination: String, _ change: (inout TaskSpec) -> Void = { _ in }
  ) async throws -> UniqueID {
    var spec = TaskSpec(
      id: .make(), kind: kind, source: "storage://default/film.mp4", destination: destination,
      connections: Self.connections)
    if destination.hasPrefix("s3:") { spec.credential = "s3" }
    change(&spec)
    try await fleet.client.submit(spec)
    return spec.id
  }

  /// The store takes no byte of the last part of a file before the gate is open.
  func holdEnd(of size: Int64) -> OriginGate {
    let gate = OriginGate()
    store.script { [weak self] in self?.isEnd($0, of: size) == true ? [.holdBody(after: 0, gate)] : [] }
    return gate
  }

  /// Of tus: the last part of each of its uploads, which are one for each 64 MiB, equally long.
  func isEnd(_ request: StoreRequest, of size: Int64) -> Bool {
    let end = size / max(1, min(4, size / (64 << 20))) - Self.part
    return switch request.operation {
    case .uploadPart: request.partNumber == Int(size / Self.part)
    case .tusPatch: request["upload-offset"] == "\(end)"
    default: false
    }
  }

  @discardableResult
  func strikeOwner(of task: UniqueID, _ signal: Int32) async throws -> ChildProcess {
    let owner = try await fleet.waitForOwner(of: task)
    owner.kill(signal)
    if signal == SIGKILL { _ = await owner.wait() }
    return owner
  }

  /// Kills the owner at a random moment of each of the next runs, and starts another worker.
  func killOwner(of task: UniqueID, times: Int) async throws {
    // What tus creates and nobody has recorded cannot be found again.
    try await fleet.eventually("its upload is recorded") {
      try await !fleet.pool.query(
        PostgresStatement("select from checkpoint where task_id = '\(task)' and payload::text like '%session%'")
      ).isEmpty
    }
    for kill in 1...times {
      let running = try await fleet.wait(for: task, "being run the \(kill). time") { $0.state == .running }
      try await fleet.loop.sleep(for: .milliseconds(Int.random(in: 50...700)))
      try await strikeOwner(of: task, SIGKILL)
      try fleet.startWorker()
      try await fleet.wait(for: task, "a take-over") { $0.epoch > running.epoch && $0.state == .running }
    }
  }
}
