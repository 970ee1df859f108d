import Glibc
import MemoryTaskStore
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

@Suite struct StagingSweepTests {
  private static let minute = StagingSweepPlanner.quiet
  private static let week = StagingSweepPlanner.kept

  /// The age in seconds from which the file of a task in this state is discarded; nil for never.
  private static let table: [(TaskState?, Int?)] = [
    (.succeeded, minute), (.canceled, minute), (.failed, week), (.paused, nil), (.queued, nil), (.blocked, nil),
    (.running, nil), (.publishing, nil), (nil, week),
  ]

  @Test("staging files are discarded by the state of their task and their age", arguments: table)
  func discardsBy(state: TaskState?, from limit: Int?) {
    let name = StagingName(task: .random(), epoch: 1, generation: 3)
    for age in [-5, 0, Self.minute - 1, Self.minute, Self.week - 1, Self.week, 10 * Self.week] {
      let planner = StagingSweepPlanner([.init(name: name, age: age)])
      #expect(planner.tasks.isEmpty == (age < Self.minute))
      let states = state.map { [name.task: $0] } ?? [:]
      #expect(planner.discards(states) == (age >= limit ?? .max ? [name] : []), "\(age) s")
    }
  }

  @Test("the file of a handler's transfer is kept as long as its task is not over")
  func keepsTransfers() {
    let name = StagingName(task: .random(), epoch: 1, generation: 0)
    let planner = StagingSweepPlanner([.init(name: name, age: 2 * Self.week)])
    #expect(planner.derived([:]) == [name.task])
    #expect(planner.discards([:], unfinished: [name.task]) == [])
    #expect(planner.discards([:], unfinished: []) == [name])
  }

  /// The age in seconds from which the scratch directory of a task in this state is discarded; nil for never.
  private static let scratchTable: [(TaskState?, Int?)] = [
    (.succeeded, minute), (.canceled, minute), (.failed, minute), (.paused, minute), (.queued, minute),
    (.blocked, minute), (.running, nil), (.publishing, nil), (nil, week),
  ]

  @Test("scratch directories are discarded by the state of their task and their age", arguments: scratchTable)
  func discardsScratchBy(state: TaskState?, from limit: Int?) {
    let name = ScratchName(task: .random(), epoch: 2)
    for age in [-5, 0, Self.minute - 1, Self.minute, Self.week - 1, Self.week, 10 * Self.week] {
      let planner = StagingSweepPlanner([], scratches: [.init(name: name, age: age)])
      #expect(planner.tasks.isEmpty == (age < Self.minute))
      let states = state.map { [name.task: $0] } ?? [:]
      #expect(planner.discardedScratches(states) == (age >= limit ?? .max ? [name] : []), "\(age) s")
      #expect(planner.discards(states) == [])
    }
  }

  @Test("the sweep removes the scratch directories of ended runs, with everything in them")
  func removesScratchDirectories() async throws {
    let directory = try TemporaryDirectory()
    let storage = Storage(roots: ["default": directory.path])
    try Volume.initialise(name: "default", path: directory.path)
    let store = MemoryStore()
    let (queued, running) = (noop(), noop())
    _ = try await store.apply([.submit(running)])
    let worker = try await store.register(
      WorkerRegistration(
        boot: .random(), host: "test", pid: 1, leaseSeconds: 3600, kinds: [.noop], volumes: storage.volumes))
    #expect(try await store.claim(worker, limit: 1, call: 1).count == 1)
    _ = try await store.apply([.submit(queued)])
    let volume = try storage.volume("default")
    let old = ScratchName(task: queued.id, epoch: 1)
    let kept = [
      ScratchName(task: running.id, epoch: 1), ScratchName(task: .random(), epoch: 1),
      ScratchName(task: queued.id, epoch: 2),
    ]
    for name in kept.dropLast() + [old] {
      let path = try volume.makeScratch(name)
      try makeDirectories("\(path)/deep")
      try FileDescriptor.open("\(path)/deep/part", O_WRONLY | O_CREAT).write("half", at: 0)
      var times = [timespec](repeating: timespec(tv_sec: time(nil) - 90, tv_nsec: 0), count: 2)
      #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
    }
    let loop = EventLoop(name: "sweep")
    let sweeper = StagingSweeper(loop: loop, store: store, storage: storage, log: quietLog)
    #expect(Set(try volume.scratches().map(\.name)) == Set(kept.dropLast() + [old]))
    await sweeper.sweep()
    #expect(Set(try volume.scratches().map(\.name)) == Set(kept.dropLast()))
    // It was changed just now.
    _ = try volume.makeScratch(kept[2])
    await sweeper.sweep()
    #expect(Set(try volume.scratches().map(\.name)) == Set(kept))
    await Task.detached { loop.shutdown() }.value
  }

  @Test("the sweep removes the staging files of canceled tasks")
  func removesFilesOfCanceledTasks() async throws {
    let directory = try TemporaryDirectory()
    let storage = Storage(roots: ["default": directory.path, "away": "\(directory.path)/none"])
    try Volume.initialise(name: "default", path: directory.path)
    let store = MemoryStore()
    let (canceled, queued) = (download(), download())
    _ = try await store.apply([
      .submit(canceled), .submit(queued), .control(.init(id: .random(), taskID: canceled.id, action: .cancel)),
    ])
    let volume = try storage.volume("default")
    let old = StagingName(task: canceled.id, epoch: 1, generation: 0)
    let fresh = StagingName(task: canceled.id, epoch: 1, generation: 1)
    let kept = StagingName(task: queued.id, epoch: 1, generation: 0)
    for name in [old, fresh, kept] { _ = try volume.create(name) }
    for name in [old, kept] {
      var times = [timespec](repeating: timespec(tv_sec: time(nil) - 90, tv_nsec: 0), count: 2)
      let code = utimensat(AT_FDCWD, "\(directory.path)/.reelhaul/staging/\(name)", &times, 0)
      #expect(code == 0)
    }
    let loop = EventLoop(name: "sweep")
    let sweeper = StagingSweeper(loop: loop, store: store, storage: storage, log: quietLog)
    await sweeper.sweep()
    #expect(Set(try volume.staged().map(\.name)) == [fresh, kept])
    await Task.detached { loop.shutdown() }.value
  }

  @Test("an entry that cannot be removed holds up no other") func anEntryThatStays() async throws {
    let directory = try TemporaryDirectory()
    let storage = Storage(roots: ["default": directory.path])
    try Volume.initialise(name: "default", path: directory.path)
    let volume = try storage.volume("default")
    let staging = "\(directory.path)/.reelhaul/staging"
    // More than the sweep asks about at once.
    let names = (1...2100).map { _ in StagingName(task: .random(), epoch: 1, generation: 0) }
    for (index, name) in names.enumerated() {
      // A directory is no staging file.
      if index % 4 == 0 { try makeDirectories("\(staging)/\(name)") } else { _ = try volume.create(name) }
    }
    let scratch = ScratchName(task: .random(), epoch: 1)
    let paths = names.map { "\(staging)/\($0)" } + [try volume.makeScratch(scratch)]
    for path in paths {
      var times = [timespec](repeating: timespec(tv_sec: time(nil) - 9 * 86_400, tv_nsec: 0), count: 2)
      #expect(utimensat(AT_FDCWD, path, &times, 0) == 0)
    }
    let loop = EventLoop(name: "sweep")
    await StagingSweeper(loop: loop, store: MemoryStore(), storage: storage, log: quietLog).sweep()
    #expect(try volume.staged().count == 525)
    #expect(try volume.scratches().isEmpty)
    await Task.detached { loop.shutdown() }.value
  }

  @Test("a sweep of a root that hangs can be ended", .timeLimit(.minutes(10))) func aSweepOfARootThatHangsCanBeEnded()
    async throws
  {
    let directory = try TemporaryDirectory()
    try Volume.initialise(name: "default", path: directory.path)
    // Opening a pipe without a writer blocks, like a file system whose server is gone.
    let marker = "\(directory.path)/.reelhaul/volume"
    #expect(unlink(marker) == 0 && mkfifo(marker, 0o600) == 0)
    let loop = EventLoop(name: "sweep")
    let sweeper = StagingSweeper(
      loop: loop, store: MemoryStore(), storage: Storage(roots: ["default": directory.path]), log: quietLog)
    try await eventually("its thread waits, still") {
      let sweep = loop.task { await sweeper.sweep() }
      // Gives the sweep time to begin. One that has not begun leaves no thread there, and another one is tried.
      try await Task.sleep(for: .seconds(1))
      sweep.cancel()
      _ = await sweep.result
      let writer = open(marker, O_WRONLY | O_NONBLOCK)
      if writer >= 0 { close(writer) }
      return writer >= 0
    }
    await Task.detached { loop.shutdown() }.value
  }
}
