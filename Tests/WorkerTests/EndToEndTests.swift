import Glibc
import ReelhaulKafka
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// From a record on Kafka to a file on disk and an event, with real parts in one process.
@Suite struct EndToEndTests {
  private func download(_ fleet: RealFleet, _ path: String) -> TaskSpec {
    TaskSpec(
      id: .random(), kind: .download, source: fleet.origin.url(path), destination: "storage://default\(path)")
  }

  @Test("a video goes from the command to the file with all its events", .timeLimit(.minutes(10))) func aVideoArrives()
    async throws
  {
    try await RealFleet.run { fleet in
      let file = OriginFile(seed: 7, size: 3_000_000)
      fleet.origin.serve("/a.mp4", file)
      let spec = download(fleet, "/a.mp4")
      try await fleet.withWorker { _ in
        try await fleet.send(.submit(spec))
        let events = try await fleet.read(1, from: fleet.configuration.settings.topics.events) { record in
          let event = try TaskEventJSON.decode(record.value ?? [])
          return event.kind == .succeeded ? event : nil
        }
        #expect(events.first?.taskID == spec.id)
        #expect(events.first?.task?.bytesDone == file.size)
        #expect(events.first?.task?.sha256 == file.content.sha256(size: file.size))
      }
      var status = stat()
      #expect(stat(fleet.directory.path + "/a.mp4", &status) == 0 && Int64(status.st_size) == file.size)
      #expect(try await fleet.store.task(spec.id)?.state == .succeeded)
      #expect(try await fleet.store.audit() == [])
    }
  }

  /// The root is marked late, moved away during a download, and moved back. The task waits and says why, no attempt is
  /// counted, and the worker continues without a restart.
  @Test("a root that comes and goes needs no restart and counts no attempt", .timeLimit(.minutes(10)))
  func aRootThatComesAndGoesNeedsNoRestart() async throws {
    try await RealFleet.run { fleet in
      let file = OriginFile(seed: 11, size: 6_000_000)
      fleet.origin.serve("/c.mp4", file)
      let end = fleet.origin.hold("/c.mp4", from: file.size / 2)
      let (root, away) = (fleet.directory.path, fleet.directory.path + ".away")
      let spec = download(fleet, "/c.mp4")
      func task() async throws -> TaskDocument? { try await fleet.store.task(spec.id) }
      func volumes() async throws -> Int { try await fleet.store.workers().first?.volumes.count ?? -1 }
      try await fleet.withWorker({ $0.initialisesStorage = false }) { _ in
        try await fleet.send(.submit(spec))
        try await eventually("it waits") { try await task()?.error?.code == .storageMissing }
        #expect(try await task()?.state == .queued)
        try Volume.initialise(name: "default", path: root)
        try await eventually("bytes move") { (try await task()?.bytesDone ?? 0) > 0 }
        #expect(rename(root, away) == 0)
        end.open()
        try await eventually("it waits again") {
          let task = try await task()
          return task?.state == .queued && task?.error?.code == .storageVolumeGone && task?.attempt == 0
        }
        try await eventually("the worker has no volume") { try await volumes() == 0 }
        var status = stat()
        #expect(stat(root, &status) != 0, "nothing is made where the root was")
        #expect(rename(away, root) == 0)
        try await eventually("the worker has its volume") { try await volumes() == 1 }
        try await eventually("it is done") { try await task()?.state == .succeeded }
        #expect(try await task()?.attempt == 1)
      }
      #expect(try await fleet.store.audit() == [])
    }
  }

  @Test("wrong records become dead letters, and the others are carried out once", .timeLimit(.minutes(10)))
  func badRecordsAreDeadLettersAndTheOthersGoOn() async throws {
    try await RealFleet.run { fleet in
      let spec = TaskSpec(id: .random(), kind: .noop, source: "noop:", destination: nil)
      let topics = fleet.configuration.settings.topics
      try await fleet.withWorker { _ in
        try await fleet.producer.send(topic: topics.commands, key: nil, value: Array("{".utf8))
        try await fleet.send(.submit(spec), .submit(spec))
        let letters = try await fleet.read(1, from: topics.deadLetters) { $0 }
        #expect(letters.first?.value == Array("{".utf8))
        try await eventually("it is carried out") { try await fleet.store.task(spec.id)?.state == .succeeded }
      }
      let events = try await fleet.read(3, from: topics.events) { try TaskEventJSON.decode($0.value ?? []).kind }
      #expect(events == [.submitted, .started, .succeeded], "and once only")
    }
  }

  @Test("a pause stops the bytes at once, and another worker continues", .timeLimit(.minutes(10)))
  func aPauseStopsTheBytesAtOnceAndAnotherWorkerGoesOn() async throws {
    try await RealFleet.run { fleet in
      let file = OriginFile(seed: 9, size: 8_000_000)
      fleet.origin.serve("/b.mp4", file)
      let end = fleet.origin.hold("/b.mp4", from: file.size / 2)
      let spec = download(fleet, "/b.mp4")
      try await fleet.withWorker { _ in
        try await fleet.send(.submit(spec))
        try await eventually("bytes move") { (try await fleet.store.task(spec.id)?.bytesDone ?? 0) > 0 }
        try await fleet.send(.control(.init(id: .random(), taskID: spec.id, action: .pause)))
        try await eventually("it is paused") { try await fleet.store.task(spec.id)?.state == .paused }
      }
      end.open()
      try await fleet.withWorker { _ in
        try await fleet.send(.control(.init(id: .random(), taskID: spec.id, action: .resume)))
        try await eventually("it is done") { try await fleet.store.task(spec.id)?.state == .succeeded }
      }
      #expect(try await fleet.store.task(spec.id)?.bytesDone == file.size)
    }
  }

  /// The first two tasks have the host's connections, and end only when the test lets them. Others wait for one, or are
  /// refused.
  @Test(
    "tasks that stand in line for a host leave the places to tasks of other hosts", .timeLimit(.minutes(10)),
    arguments: [false, true])
  func tasksInLineLeaveTheirPlaces(refuses: Bool) async throws {
    try await RealFleet.run { fleet in
      let file = OriginFile(seed: 11, size: 3_000_000)
      let paths = (0..<8).map { "/slow-\($0).mp4" }
      for path in paths { fleet.origin.serve(path, file) }
      let end = OriginGate()
      defer { end.open() }
      for path in paths {
        fleet.origin.script(path) { request in
          if refuses, request.inProgress > 2 { return [.answer(503)] }
          return [.hold(after: max(0, file.size / 2 - (request.range?.first ?? 0)), end)]
        }
      }
      fleet.origin.serve("/other.mp4", file)
      let slow = paths.map { download(fleet, $0) }
      var other = download(fleet, "/other.mp4")
      other.source = other.source.replacing("127.0.0.1", with: "localhost")
      try await fleet.withWorker({ configuration in
        configuration.settings.concurrency = 4
        configuration.hostConnections = refuses ? 16 : 2
      }) { _ in
        for spec in slow { try await fleet.send(.submit(spec)) }
        try await eventually("all places are taken") {
          try await fleet.store.limits().contains { $0.isOf(.host, "127.0.0.1") && $0.running == 4 }
        }
        try await fleet.send(.submit(other))
        try await eventually("the other one is done") { try await fleet.store.task(other.id)?.state == .succeeded }
        let use = try #require(try await fleet.store.limits().first { $0.isOf(.host, "127.0.0.1") })
        #expect(use.running <= 3 && use.limit ?? 4 <= 3 && use.limit == use.learned)
        if !refuses { #expect(use.running == 3 && use.limit == 3 && use.learned == 3) }
        end.open()
        for spec in slow {
          try await eventually("it is done") { try await fleet.store.task(spec.id)?.state == .succeeded }
          #expect(try await fleet.store.task(spec.id)?.attempt == 1)
        }
        guard !refuses else { return }
        try await eventually("the limit ends some time after the line", within: .seconds(60)) {
          try await fleet.store.limits().first { $0.isOf(.host, "127.0.0.1") }?.learned == nil
        }
      }
    }
  }

  @Test("a canceled download leaves no staging file", .timeLimit(.minutes(10)))
  func aCanceledDownloadLeavesNothing() async throws {
    try await RealFleet.run { fleet in
      let file = OriginFile(seed: 13, size: 8_000_000)
      fleet.origin.serve("/d.mp4", file)
      let end = fleet.origin.hold("/d.mp4", from: file.size / 2)
      defer { end.open() }
      let spec = download(fleet, "/d.mp4")
      let storage = Storage(roots: ["default": fleet.directory.path])
      try await fleet.withWorker { _ in
        try await fleet.send(.submit(spec))
        try await eventually("bytes are recorded") { (try await fleet.store.task(spec.id)?.bytesDone ?? 0) > 0 }
        try await fleet.send(.control(.init(id: .random(), taskID: spec.id, action: .pause)))
        try await eventually("it is paused") { try await fleet.store.task(spec.id)?.state == .paused }
        #expect(try storage.volume("default").staged().map(\.name.task) == [spec.id])
        try await fleet.send(.control(.init(id: .random(), taskID: spec.id, action: .cancel)))
        // The sweep keeps files that are younger than a minute.
        try await eventually("its staging file is gone", within: .seconds(40)) {
          try storage.volume("default").staged().isEmpty
        }
        #expect(try await fleet.store.task(spec.id)?.state == .canceled)
      }
    }
  }

  @Test("remove with files deletes the file that the task published, and no other file", .timeLimit(.minutes(10)))
  func removeWithFiles() async throws {
    try await RealFleet.run { fleet in
      fleet.origin.serve("/e.mp4", OriginFile(seed: 14, size: 100_000))
      let (own, foreign, kept) = (download(fleet, "/e.mp4"), UniqueID.random(), UniqueID.random())
      var specs = [own, own, own]
      specs[1].id = foreign
      specs[1].destination = "storage://default/foreign.mp4"
      specs[2].id = kept
      specs[2].destination = "storage://default/kept.mp4"
      func exists(_ name: String) -> Bool { access("\(fleet.directory.path)/\(name)", F_OK) == 0 }
      try await fleet.withWorker { _ in
        for spec in specs { try await fleet.send(.submit(spec)) }
        try await eventually("they are done") {
          try await fleet.store.states(of: specs.map(\.id)).values.count { $0 == .succeeded } == 3
        }
        // Somebody puts another file there.
        let path = "\(fleet.directory.path)/foreign.mp4"
        #expect(unlink(path) == 0)
        try FileDescriptor.open(path, O_WRONLY | O_CREAT).write("mine", at: 0)
        try await fleet.send(
          .control(.init(id: .random(), taskID: kept, action: .remove(files: false))),
          .control(.init(id: .random(), taskID: foreign, action: .remove(files: true))),
          .control(.init(id: .random(), taskID: own.id, action: .remove(files: true))))
        try await eventually("its file is gone") { !exists("e.mp4") }
        try await eventually("the tasks are gone") { try await fleet.store.states(of: specs.map(\.id)).isEmpty }
      }
      #expect(exists("foreign.mp4") && exists("kept.mp4"))
    }
  }
}
