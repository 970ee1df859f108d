import ReelhaulPostgres
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine

/// A database with the first version of the schema continues with this one.
@Suite struct UpgradeTests {
  @Test("a database of the first version is upgraded in place, and its tasks continue")
  func upgrade() async throws {
    try await withFirstVersion { store, pool in
      let migrator = Schema.migrator(pool)
      let plan = try await migrator.plan()
      #expect(plan.current == 1)
      #expect(plan.pending == Array(Schema.migrations.dropFirst()))
      #expect(plan.needsRoutines)
      let refusal = await #expect(throws: StoreError.self) { try await store.bind(topicPrefix: "reelhaul.") }
      #expect("\(String(describing: refusal))".contains("'reelhaul migrate' updates it"))

      #expect(try await migrator.apply() == MigrationResult(plan))
      #expect(try await migrator.plan().isUpToDate)
      try await store.bind(topicPrefix: "reelhaul.")
      #expect(try await store.audit() == [])
      let states: [Int: TaskState?] = [
        1: .blocked, 2: .queued, 3: .queued, 4: .queued, 5: .running, 6: .publishing, 7: .paused, 8: .succeeded,
        9: .canceled, 10: .failed, 11: nil, 12: .running, 13: .queued, 14: .queued, 15: .canceled, 16: .queued,
      ]
      for (number, state) in states { #expect(try await store.task(.first(number))?.state == state, "\(number)") }
      #expect(try await store.task(.first(8))?.sha256 == Array(repeating: 0xCD, count: 32))
      #expect(try await store.tasks(TaskFilter(state: .retrying)).count == 2)
      #expect(try await store.tasks(TaskFilter(state: .scheduled)).map(\.spec.id) == [.first(3)])
      #expect(try await store.takeEvents(limit: 100).count == 35)

      // Tasks that ran while the schema changed continue in their worker.
      #expect(try await store.renew(.first, samples: []).intents == [.first(12): .pause])
      try await settle(store, 6, epoch: 1, .succeeded(sha256: Array(repeating: 0xAB, count: 32), bytes: 67_108_864))
      try await settle(store, 12, epoch: 1, .handBack)
      #expect(try await store.task(.first(12))?.state == .paused)
      try await settle(store, 5, epoch: 1, .handBack)
      #expect(try await store.task(.first(5))?.bytesDone == 41_943_040)

      // A worker of this version claims the waiting tasks with their checkpoints.
      let worker = try await store.register(.downloads)
      let claims = try await store.claim(worker, limit: 10)
      #expect(Set(claims.map(\.spec.id)) == [.first(2), .first(5), .first(13), .first(16)])
      for claim in claims {
        switch claim.spec.id {
        case .first(5):
          let point = try DownloadCheckpoint(try #require(claim.checkpoint))
          #expect(point.done.ranges == [0..<33_554_432, 41_943_040..<50_331_648])
          #expect(point.generation == 2 && point.tailCRC == 3_735_928_559 && point.publishing == nil)
          #expect(point.identity.etag == #""v1""# && point.identity.size == 67_108_864)
          #expect(point.volume == .volume && point.stagingName == "\(claim.spec.id).2")
          #expect(point.envelope == claim.checkpoint, "as this version would have written it")
        case .first(13):
          let point = try DownloadCheckpoint(try #require(claim.checkpoint))
          #expect(point.done.ranges == [0..<8_388_608, 16_777_216..<25_165_824])
        default: #expect(claim.checkpoint == nil)
        }
        try await settle(store, claim, .success)
      }
      #expect(
        try await store.claim(worker, limit: 10).map(\.spec.id) == [.first(1)], "the one it came after has succeeded")

      for (number, action) in [(7, ControlAction.resume), (10, .retry), (15, .retry), (3, .cancel), (4, .remove)] {
        let command = Command.control(.init(id: .random(), taskID: .first(number), action: action))
        #expect(try await store.apply([command]) == [.applied], "\(number)")
      }
      #expect(Set(try await store.claim(worker, limit: 10).map(\.spec.id)) == [.first(7), .first(10), .first(15)])
      let renamed = try await store.limits().first { $0.name == "archive" }
      #expect(renamed?.weight == 2.5)
    }
  }

  private func settle(_ store: PostgresStore, _ claim: Claim, _ outcome: Settlement.Outcome) async throws {
    #expect(try await store.settle([Settlement(taskID: claim.spec.id, epoch: claim.epoch, outcome: outcome)]) == [true])
  }

  private func settle(
    _ store: PostgresStore, _ number: Int, epoch: Int, _ outcome: Settlement.Outcome
  ) async throws {
    #expect(try await store.settle([Settlement(taskID: .first(number), epoch: epoch, outcome: outcome)]) == [true])
  }
}

/// Runs `body` on a database of the first version.
func withFirstVersion(
  _ body: @escaping @Sendable (PostgresStore, PostgresPool) async throws -> Void
) async throws {
  let path = "\(#filePath)".split(separator: "/").dropLast().map { "/" + $0 }.joined() + "/Resources/FirstVersion.sql"
  let dump = String(decoding: try TestFleet.contents(path), as: UTF8.self)
  try await withPostgresStore(
    schema: { pool in
      _ = try await pool.withConnection { try await $0.script("begin; \(dump); commit") }
    }, body)
}

extension UniqueID {
  /// The id of a task in the stored database, by its number.
  static func first(_ number: Int) -> UniqueID {
    UniqueID(high: 0x0199_0000_0000_7000, low: 0x8000_0000_0000_0000 | UInt64(number))
  }

  /// The volume `default` of the stored database.
  static let volume = UniqueID("6f9619ff-8b86-4d01-b42d-00cf4fc964ff")!
}

extension WorkerID {
  /// The worker of the stored database.
  static let first = WorkerID(rawValue: 1)
}

extension WorkerRegistration {
  static var downloads: WorkerRegistration {
    WorkerRegistration(
      boot: .random(), host: "test", pid: 1, leaseSeconds: 3600, kinds: [.noop, .download],
      volumes: ["default": .volume])
  }
}
