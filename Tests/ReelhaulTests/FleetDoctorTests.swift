import MemoryTaskStore
import TaskAdvice
import TaskCore
import TaskStore
import Testing

@testable import reelhaul

/// A store that cannot be audited.
private struct Unauditable: FleetReader {
  let inner = MemoryStore()

  func topicPrefix() async throws -> String? { try await inner.topicPrefix() }
  func workers() async throws -> [WorkerDocument] { try await inner.workers() }
  func limits() async throws -> [LimitUse] { try await inner.limits() }
  func backlog() async throws -> Backlog { try await inner.backlog() }
  func waitingHooks() async throws -> [HookBacklog] { try await inner.waitingHooks() }
  func counts() async throws -> [TaskState: Int] { try await inner.counts() }
  func audit() async throws -> [String] { throw StoreError.unavailable("no answer") }
}

@Suite struct FleetDoctorTests {
  private static func worker(_ volumes: [String: Int] = ["default": 1], isLive: Bool = true) -> WorkerDocument {
    WorkerDocument(
      id: UniqueID(high: 1, low: 1), host: "h", pid: 1, startedAt: Timestamp(microseconds: 0),
      leaseUntil: Timestamp(microseconds: 0), isLive: isLive, running: 1, kinds: [.download],
      volumes: volumes.mapValues { UniqueID(high: 2, low: UInt64($0)) }, labels: [:], bytesPerSecond: 0)
  }

  private static func task(_ destination: String = "storage://default/a", _ state: TaskState = .queued) -> TaskDocument
  {
    TaskDocument(
      spec: TaskSpec(
        id: UniqueID(high: 3, low: 3), kind: .download, source: "https://example.org/a", destination: destination,
        queue: "slow"),
      state: state, createdAt: Timestamp(microseconds: 0))
  }

  @Test("a fleet whose workers have all died has none") func deadWorkers() async throws {
    let store = MemoryStore()
    let worker = try await store.register(
      WorkerRegistration(
        boot: UniqueID(high: 1, low: 9), host: "h", pid: 1, leaseSeconds: 60, kinds: [.noop], volumes: [:]))
    for (isLive, status) in [(true, Finding.Status.ok), (false, .warning)] {
      if !isLive { store.expireLease(of: worker) }
      let findings = try await FleetDoctor(store: store, topicPrefix: nil, audits: false).examine()
      #expect(findings.first { $0.check == "workers" }?.status == status)
    }
  }

  @Test("a storage that tasks wait for and no worker has is a failure")
  func aStorageThatTasksWaitForMustBeSomewhere() {
    let findings = FleetDoctor.storages([Self.worker()], wanted: ["default", "nas"])
    #expect(findings.map(\.check) == ["storage nas"])
    #expect(findings.map(\.status) == [.failed])
    #expect(FleetDoctor.storages([Self.worker()], wanted: ["default"]) == [])
  }

  @Test("a kind of waiting tasks that no worker handles is a failure")
  func aKindThatTasksAreOfMustBeCarriedOut() {
    let typo = TaskKind(rawValue: "downlaod")
    let findings = FleetDoctor.kinds([Self.worker()], wanted: [.download, typo])
    #expect(findings.map(\.check) == ["kind downlaod"])
    #expect(findings.map(\.status) == [.failed])
    #expect(FleetDoctor.kinds([], wanted: [typo]) == [], "there is no worker at all")
  }

  @Test("tasks between two storages need one worker with both, and the doctor says which is missing")
  func twoStoragesMustBeOnOneWorker() {
    let pair = StoragePair(source: "nas", destination: "archive")
    func message(_ workers: [String: Int]...) -> String? {
      let findings = FleetDoctor.pairs(workers.map { Self.worker($0) }, wanted: [pair])
      #expect(findings.allSatisfy { $0.check == "storages nas, archive" && $0.status == .failed })
      return findings.first?.message
    }
    #expect(message(["nas": 1, "archive": 2]) == nil)
    #expect(message(["nas": 1]) == "tasks from one to the other wait: no live worker has archive")
    #expect(message(["archive": 1]) == "tasks from one to the other wait: no live worker has nas")
    #expect(message(["other": 1]) == "tasks from one to the other wait: no live worker has either")
    #expect(message(["nas": 1], ["archive": 2]) == "tasks from one to the other wait: no live worker has both")
    #expect(message() == nil, "there is no worker at all")
  }

  @Test("a task between two storages names both, and the one that holds it up")
  func aTaskOfTwoStoragesNamesTheOneThatHoldsItUp() {
    var task = Self.task("storage://archive/a")
    task.spec.source = "storage://nas/a"
    func reason(_ workers: [WorkerDocument], _ limits: [LimitUse] = []) -> String? {
      WaitReason.of(task, workers: workers, limits: limits)
    }
    let (nas, archive, both) = (
      Self.worker(["nas": 1]), Self.worker(["archive": 2]), Self.worker(["nas": 1, "archive": 2])
    )
    let names = "for the storages nas (source) and archive (destination): "
    #expect(reason([both]) == nil)
    #expect(reason([nas]) == names + "no live worker has archive")
    #expect(reason([archive]) == names + "no live worker has nas")
    #expect(reason([Self.worker()]) == names + "no live worker has either")
    #expect(reason([nas, archive]) == names + "no live worker has both")
    // Nothing can be run by a worker that has no handler for it.
    var unable = both
    unable.kinds = [.noop]
    #expect(reason([unable, nas]) == names + "no live worker has archive")
    for (name, running) in [("nas", 3), ("archive", 2)] {
      #expect(
        reason([both], [LimitUse(scope: .storage, name: name, running: running, limit: running)])
          == "for a free place in the storages nas (source) and archive (destination): "
          + "\(running) run, and the limit of storage \(name) is \(running)")
    }
    #expect(reason([both], [LimitUse(scope: .storage, name: "other", limit: 0)]) == nil)
    #expect(
      reason([both], [LimitUse(scope: .total, name: "", running: 2, limit: 2)])
        == "for a free place: 2 run, and the limit of total is 2")
  }

  @Test("a storage name with different volumes is a warning")
  func oneNameIsOneVolume() {
    let findings = FleetDoctor.storages([Self.worker(["a": 1, "b": 1]), Self.worker(["a": 2, "b": 1])], wanted: [])
    #expect(findings.map(\.check) == ["storage a"])
    #expect(findings.map(\.status) == [.warning])
  }

  @Test("limits of 0 are named")
  func heldPlacesAreNamed() {
    let held = FleetDoctor.limits([LimitUse(scope: .total, name: ""), LimitUse(scope: .queue, name: "q", limit: 0)])
    #expect(held.status == .warning)
    #expect(held.message == "0 of queue q: their tasks wait")
    #expect(held.advice == "'reelhaul limit queue q none' releases them.")
    var declared = LimitUse(scope: .kind, name: "k", limit: 0)
    declared.declared = 0
    #expect(
      FleetDoctor.limits([declared, LimitUse(scope: .queue, name: "q", limit: 0)]).advice
        == "'reelhaul limit kind k 5', 'reelhaul limit queue q none' release them.")
    #expect(FleetDoctor.limits([LimitUse(scope: .host, name: "h", running: 4, limit: 4)]).status == .ok)
  }

  @Test("hosts that have stopped serving are told, and are no limits of 0")
  func hostsThatAreOutAreTold() {
    let outage = HostOutage(
      server: "a.example:443", since: Timestamp(microseconds: 0), probeAt: Timestamp(microseconds: 9),
      code: .connectFailed, message: "refused")
    let limits = [
      LimitUse(scope: .total, name: ""),
      LimitUse(scope: .host, name: "a.example", limit: 0, outage: outage, outageLimit: 0),
    ]
    #expect(FleetDoctor.hosts(limits).status == .warning)
    #expect(
      FleetDoctor.hosts(limits).message == "a.example has served no task since \(Timestamp(microseconds: 0)): refused")
    #expect(
      FleetDoctor.hosts([LimitUse(scope: .host, name: "a.example", outage: outage)]).message.hasPrefix(
        "a.example:443 has"),
      "another server of the host serves")
    #expect(FleetDoctor.limits(limits).status == .ok)
    #expect(FleetDoctor.hosts([LimitUse(scope: .host, name: "a.example", limit: 0)]).status == .ok)
  }

  @Test("events that wait for more than a minute are a warning")
  func eventsThatStayAreTold() {
    let young = FleetDoctor.events(.seconds(60), [])
    #expect(young.status == .ok && young.message == "no event waits for long")
    #expect(FleetDoctor.events(.seconds(61), []).status == .warning)
  }

  @Test("the hosts whose web hooks take no events are told, the worst first")
  func hostsThatTakeNoEventsAreTold() {
    func host(_ name: String, _ events: Int, _ seconds: Int, _ error: String? = nil) -> HookBacklog {
      HookBacklog(host: name, events: events, age: .seconds(seconds), error: error)
    }
    #expect(FleetDoctor.hooks([host("a.example", 3, 60, "status 500")], []).status == .ok)
    let hosts = [
      host("a.example", 1, 61), host("b.example", 10_000, 7200, "status 500"), host("c.example", 5, 240),
      host("d.example", 2, 120), host("e.example", 2, 10),
    ]
    let finding = FleetDoctor.hooks(hosts, [Self.worker()])
    #expect(finding.status == .warning && finding.advice?.contains("notify") == true)
    #expect(
      finding.message == """
        at least 10000 events wait for web hooks at b.example for 2 h 0 min: status 500; \
        5 events wait for web hooks at c.example for 4 min; 2 events wait for web hooks at d.example for 2 min; 1 more host
        """)
  }

  @Test("the doctor reads the fleet's state from its store")
  func theFleetIsReadThroughItsStore() async throws {
    let store = MemoryStore()
    _ = try await store.apply([.submit(Self.task("storage://nas/a").spec)])
    let findings = try await FleetDoctor(store: store, topicPrefix: "a.", audits: true).examine()
    // No worker is live. This is the finding; the task's other needs are not reported.
    #expect(findings.map(\.check) == ["fleet", "workers", "events", "web hooks", "hosts", "limits", "audit"])
    #expect(findings.map(\.status) == [.ok, .warning, .ok, .ok, .ok, .ok, .ok])
    try await store.bind(topicPrefix: "b.")
    let other = try await FleetDoctor(store: store, topicPrefix: "a.", audits: false).examine()[0]
    #expect(other.status == .misconfigured)
    #expect(other.message.contains("\"a.\"") && other.message.contains("\"b.\""), "\(other.message)")
    let unknown = try await FleetDoctor(store: store, topicPrefix: nil, audits: false).examine()
    #expect(
      unknown.map(\.check) == ["workers", "events", "web hooks", "hosts", "limits"], "there is nothing to compare with")
  }

  @Test("an audit that fails is a finding, and the others are told") func anAuditThatFailsIsAFinding() async throws {
    let findings = try await FleetDoctor(store: Unauditable(), topicPrefix: "a.", audits: true).examine()
    #expect(findings.map(\.check) == ["fleet", "workers", "events", "web hooks", "hosts", "limits", "audit"])
    #expect(findings.last?.status == .failed && findings.last?.message.contains("no answer") == true)
  }

  @Test("a task says what it waits for")
  func aTaskSaysWhatItWaitsFor() {
    func reason(
      _ task: TaskDocument = Self.task(), _ workers: [WorkerDocument] = [Self.worker()], _ limits: [LimitUse] = []
    ) -> String? {
      WaitReason.of(task, workers: workers, limits: limits)
    }
    #expect(reason() == nil)
    #expect(reason(Self.task("storage://nas/a")) == "for the storage nas: no live worker can use it")
    var typo = Self.task()
    typo.spec.kind = TaskKind(rawValue: "downlaod")
    #expect(reason(typo) == "for a worker with a handler for the kind downlaod: no live worker has one")
    var released = Self.task()
    released.error = TaskFailure(code: .diskFull, message: "the disk was full", class: .wait)
    #expect(reason(released) == nil)
    #expect(
      reason(released, [Self.worker()], [LimitUse(scope: .host, name: "example.org", limit: 0)])
        == "for a free place: 0 run, and the limit of host example.org is 0")
    #expect(reason(Self.task(), [Self.worker(isLive: false)])?.contains("no worker is live") == true)
    #expect(
      reason(Self.task(), [Self.worker()], [LimitUse(scope: .host, name: "example.org", running: 4, limit: 4)])
        == "for a free place: 4 run, and the limit of host example.org is 4")
    #expect(
      reason(Self.task(), [Self.worker()], [LimitUse(scope: .total, name: "", running: 2, limit: 2)])
        == "for a free place: 2 run, and the limit of total is 2")
    #expect(reason(Self.task(), [Self.worker()], [LimitUse(scope: .queue, name: "other", limit: 0)]) == nil)
    var out = LimitUse(scope: .host, name: "example.org", limit: 1, outageLimit: 1)
    out.outage = HostOutage(
      server: "a.example:443", since: Timestamp(microseconds: 0), probeAt: Timestamp(microseconds: 9),
      code: .connectFailed, message: "refused")
    #expect(
      reason(Self.task(), [Self.worker()], [out])?.hasPrefix("for example.org: it has served no task since") == true)
    (out.limit, out.outageLimit) = (8, nil)
    #expect(reason(Self.task(), [Self.worker()], [out]) == nil, "it has another server")
    #expect(reason(Self.task("storage://nas/a", .running)) == nil)
  }
}
