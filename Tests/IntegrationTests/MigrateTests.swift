import Glibc
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

/// `migrate`, and what the other commands say of a database that it has not prepared for them.
@Suite struct MigrateTests {
  @Test("a database that belongs to another topic prefix is refused until its fleet is given the new one")
  func aFleetOfAnotherPrefixIsRefused() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    let file = OriginFile(seed: 5, size: 1000)
    fleet.origin.serve("/a.mp4", file)
    let other = ["--topic-prefix", "other."]
    for words in [["migrate"], ["migrate", "--plan"], ["worker"], ["doctor"]] {
      let refused = try await fleet.run(words + other)
      #expect(refused.status == .exited(2), "\(words): \(refused.output)")
      for name in [fleet.prefix, "other.", "REELHAUL_TOPIC_PREFIX", "docs/operations.md"] {
        #expect(refused.output.contains(name), "\(words): \(refused.output)")
      }
    }
    // `up` reads no such variable, so its error names none.
    let directory = try TemporaryDirectory(prefix: "reelhaul-up")
    let postgres = try #require(fleet.environment["REELHAUL_POSTGRES"])
    let up = try await fleet.run(
      ["up", "--workers", "0", "--data-dir", "\(directory.path)/data", "--postgres", postgres] + other)
    #expect(up.status == .exited(2) && up.output.contains("Correct --topic-prefix, or"), "\(up.output)")
    let doctor = try await fleet.run(["doctor", "--topic-prefix", "a b."])
    #expect(doctor.status == .exited(2), "\(doctor.output)")
    for finding in ["--topic-prefix (REELHAUL_TOPIC_PREFIX): ", "broker", "database", "schema", "events"] {
      #expect(doctor.output.contains(finding), "what else there is to say is said: \(doctor.output)")
    }
    let task = try await fleet.download("/a.mp4")
    try await fleet.wait(for: task, .succeeded)
    #expect(try await fleet.problemsOfEvents() == [])

    // The statement from docs/operations.md.
    let change =
      "update fleet set topic_prefix = 'other.' where not exists (select from worker where not dead and lease_until > now())"
    try await fleet.pool.withConnection { _ = try await $0.script(change) }
    #expect(try await fleet.run(["migrate"]).status == .exited(0), "a fleet that works keeps its prefix")
    let worker = try #require(fleet.running.first)
    // As in a restored dump, nobody has swept its worker.
    worker.kill(SIGKILL)
    _ = await worker.wait()
    try await fleet.endLease(of: worker)
    try await fleet.pool.withConnection { _ = try await $0.script(change) }
    #expect(try await fleet.run(["migrate"]).status == .exited(2))
    #expect(try await fleet.run(["migrate"] + other).status == .exited(0))
    await fleet.stop()
  }

  @Test("doctor finds a user that may write, and not make the tables of each day") func owner() async throws {
    let fleet = try await TestFleet.start(workers: 0)
    let role = "guest_\(UInt32.random(in: 0 ... .max))"
    let own = try #require(fleet.environment["REELHAUL_POSTGRES"])
    let url = try "postgres://\(role)@\(#require(own.split(separator: "@").last))"
    let grants = "grant select, insert, update, delete on all tables in schema public to \(role)"
    try await TestPostgres.shared.asSuperuser { try await $0.script("create role \(role) login") }
    let owner = try await fleet.pool.query("select current_user::text")[0].text(0)
    try await fleet.pool.withConnection { _ = try await $0.script(grants) }
    func database() async throws -> String {
      let lines = try await fleet.run(["doctor", "--postgres", url]).output.split(separator: "\n")
      return String(lines.first { $0.contains("database") } ?? "")
    }
    #expect(try await database().contains("does not let this user write tasks, or make the tables"))
    try await TestPostgres.shared.asSuperuser { try await $0.script("grant \(owner) to \(role)") }
    #expect(try await database().contains("PostgreSQL "))
    await fleet.stop()
  }

  @Test("a worker waits for a missing schema, and refuses the schema of another program")
  func aWorkerTellsOfASchemaThatIsNotItsOwn() async throws {
    let fleet = try await TestFleet.start(workers: 0)
    let url = try await TestPostgres.shared.database()
    let worker = try fleet.startWorker(["REELHAUL_POSTGRES": url])
    try await fleet.eventually("it says what to do") {
      fleet.logs().contains("no schema of reelhaul yet: 'reelhaul migrate'")
    }
    #expect(try await fleet.run(["migrate", "--postgres", url]).status == .exited(0))
    try await fleet.eventually("it has its lease") { fleet.logs().contains("the worker is registered") }
    worker.kill(SIGTERM)
    #expect(await worker.wait() == .exited(0))

    let newer = "insert into schema_history (number, name, checksum) values (1000, 'later', 0)"
    let foreign = "drop table schema_history cascade; create table schema_history (version int)"
    for (change, reason, advice) in [
      (newer, "upgrade the program", "pgrade this program"),
      (foreign, "belongs to another program", "another database or schema"),
    ] {
      try await fleet.pool.withConnection { _ = try await $0.script(change) }
      for (words, code) in [(["worker"], 2 as Int32), (["migrate"], 1), (["doctor"], 1)] {
        let refused = try await fleet.run(words)
        #expect(refused.status == .exited(code), "\(words): \(refused.output)")
        #expect(refused.output.contains(reason) && refused.output.contains(advice), "\(refused.output)")
      }
    }
    await fleet.stop()
  }

  @Test(
    "migrate checks all its settings before it writes anything",
    arguments: [("--kafka", "broker", "Kafka's address must be"), ("--storage", "films", "--storage")])
  func aMigrationReadsAllThatItIsGivenFirst(option: String, value: String, reason: String) async throws {
    let fleet = try await TestFleet.start(workers: 0)
    let url = try await TestPostgres.shared.database()
    let refused = try await fleet.run(["migrate", "--postgres", url, option, value])
    #expect(refused.status == .exited(2) && refused.output.contains(reason), "\(refused.output)")
    let plan = try await fleet.run(["migrate", "--plan", "--postgres", url])
    #expect(plan.output.contains("is to be applied"), "nothing was written: \(plan.output)")
    await fleet.stop()
  }

  @Test("migrate --json tells every migration, the routines, the topics and the storages, and what was done to each")
  func aMigrationIsToldAsOneDocument() async throws {
    let fleet = try await TestFleet.start(workers: 0)
    let url = try await TestPostgres.shared.database()
    let directory = try TemporaryDirectory(prefix: "reelhaul-migrate")
    let words = [
      "migrate", "--json", "--postgres", url, "--topic-prefix", "told.", "--storage", "films=\(directory.path)",
    ]
    let last = Schema.migrations.count
    /// The document that is expected before its storages.
    func schema(plan: Bool, before: Int, _ status: (Int) -> String, _ routines: String) -> String {
      let migrations = Schema.migrations.map { migration in
        """
        {"number":\(migration.number),"name":"\(migration.name)","checksum":"\(migration.checksum)",\
        "status":"\(status(migration.number))"}
        """
      }
      return """
        {"plan":\(plan),"schema":{"before":\(before),"after":\(last)},"migrations":[\(migrations.joined(separator: ","))],\
        "routines":{"checksum":"\(Schema.routines.checksum)","status":"\(routines)"},"storages":[{"name":"films",
        """.replacing("\n", with: "")
    }
    func told(_ extra: [String] = []) async throws -> String {
      let outcome = try await fleet.run(words + extra)
      #expect(outcome.status == .exited(0), "\(outcome.output)")
      return outcome.output
    }

    let plan = try await told(["--plan"])
    #expect(plan.hasPrefix(schema(plan: true, before: 0, { _ in "pending" }, "pending")), "\(plan)")
    #expect(plan.contains(#""volume":null,"status":"pending"}"#), "\(plan)")
    #expect(plan.contains(#"{"name":"told.commands","partitions":48,"status":"pending","differences":[]}"#), "\(plan)")

    let done = try await told()
    #expect(done.hasPrefix(schema(plan: false, before: 0, { _ in "applied" }, "applied")), "\(done)")
    #expect(done.contains(#""status":"marked"}"#) && !done.contains("null"), "\(done)")
    // The development broker gives every topic as many partitions as it was started with.
    #expect(done.contains(#"{"name":"told.commands","partitions":4,"status":"created","differences":[{"setting":"#))
    #expect(!done.contains("pending") && !done.contains("unchanged"), "\(done)")

    let again = try await told()
    #expect(again.hasPrefix(schema(plan: false, before: last, { _ in "unchanged" }, "unchanged")), "\(again)")
    for word in ["applied", "created", "marked", "pending"] { #expect(!again.contains("\"\(word)\""), "\(again)") }

    // What a program of another version left behind.
    let loop = EventLoop(name: "test")
    let pool = PostgresPool(loop: loop, configuration: try PostgresConfiguration(url: url), size: 1)
    try await pool.withConnection { _ = try await $0.script("update schema_routines set checksum = 0") }
    await pool.close()
    loop.shutdown()
    let routines = try await told(["--plan"])
    #expect(routines.hasPrefix(schema(plan: true, before: last, { _ in "unchanged" }, "pending")), "\(routines)")

    let refused = try await fleet.run(words + ["--topic-prefix", "other."])
    #expect(refused.status == .exited(2) && !refused.output.contains("{"), "a failure prints no document")
    await fleet.stop()
  }

  @Test("commands on an older schema name both versions, change nothing, and tell that a task was sent")
  func olderSchema() async throws {
    let fleet = try await TestFleet.start(workers: 0)
    let last = Schema.migrations.count
    try await fleet.pool.withConnection {
      _ = try await $0.script(
        """
        delete from schema_history where number = \(last);
        alter function find_tasks rename to found_tasks;
        alter function task_documents rename to found_documents;
        """)
    }
    let need = "has version \(last - 1), but this program needs version \(last): 'reelhaul migrate'"
    for words in [["list"], ["weight", "z", "2"], ["limit", "total", "4"], ["token", "create", "--scope", "read"]] {
      let refused = try await fleet.run(words)
      #expect(refused.status == .exited(3) && refused.output.contains(need), "\(words): \(refused.output)")
      #expect(!refused.output.contains("does not exist"), "\(words): \(refused.output)")
    }
    #expect(try await fleet.store.limits().allSatisfy { $0.name != "z" && $0.limit == nil })
    #expect(try await fleet.store.tokens().isEmpty)
    let waiting = try await fleet.run(["download", "https://example.org/a.mp4", "--wait"])
    #expect(waiting.status == .exited(3) && waiting.output.contains(need), "\(waiting.output)")
    #expect(waiting.output.contains("The task continues: "), "\(waiting.output)")

    var options = ChildProcess.Options()
    options.environment = fleet.environment
    options.stdout = "\(fleet.scratch)/serve.log"
    options.stderr = options.stdout
    options.signalOnParentDeath = SIGKILL
    let serve = try ChildProcess(TestFleet.binary, ["serve", "--port", "0"], options)
    try await fleet.eventually("serve tells it once at its start, though nobody asks") {
      String(decoding: try TestFleet.contents("\(fleet.scratch)/serve.log"), as: UTF8.self).contains(need)
    }
    serve.kill(SIGTERM)
    #expect(await serve.wait() == .exited(0))
    await fleet.stop()
  }

  @Test("the root of a storage that tasks or workers have used gets a new mark only if it is said to be a new volume")
  func anUnmountedDiskIsNotMarked() async throws {
    let fleet = try await TestFleet.start(workers: 1)
    fleet.origin.serve("/a.mp4", OriginFile(seed: 5, size: 1000))
    try await fleet.wait(for: try await fleet.download("/a.mp4"), .succeeded)
    let worker = try #require(fleet.running.first)
    worker.kill(SIGTERM)
    #expect(await worker.wait() == .exited(0))
    // What is left of a mount without its disk.
    let root = try #require(fleet.environment["REELHAUL_STORAGE"]?.split(separator: "=").last)
    #expect(rename("\(root)/.reelhaul", "\(fleet.scratch)/disk") == 0)
    for words in [["migrate"], ["migrate", "--plan"]] {
      let refused = try await fleet.run(words)
      #expect(refused.status == .exited(1), "\(words): \(refused.output)")
      #expect(refused.output.contains("has no mark, but tasks have used this storage: is the disk mounted?"))
      #expect(refused.output.contains("--new-volume default"), "\(refused.output)")
      #expect(access("\(root)/.reelhaul", F_OK) != 0)
    }
    #expect(try await fleet.run(["migrate", "--new-volume", "other"]).status == .exited(2))

    let volume = UniqueID.random()
    try await fleet.pool.withConnection {
      _ = try await $0.script(
        """
        select register_worker(gen_random_uuid(), 'h', 1, 60, '{noop}', '{null}', '{null}', '{nas}', '{\(volume)}', '{}', '{}', '1')
        """)
    }
    let directory = try TemporaryDirectory(prefix: "reelhaul-nas")
    let nas = try await fleet.run(["migrate", "--storage", "nas=\(directory.path)"])
    #expect(nas.status == .exited(1) && nas.output.contains("known it as volume \(volume)"), "\(nas.output)")
    let unused = try await fleet.run(["migrate", "--storage", "unused=\(directory.path)"])
    #expect(unused.status == .exited(0) && unused.output.contains("marked as volume"), "\(unused.output)")

    let new = try await fleet.run(["migrate", "--new-volume", "default"])
    #expect(new.status == .exited(0) && new.output.contains("storage default: marked as volume"), "\(new.output)")
    #expect(try await fleet.run(["migrate"]).status == .exited(0))
    await fleet.stop()
  }

  @Test("functions of a newer program are replaced only with --downgrade")
  func functionsOfANewerProgramAreKept() async throws {
    let fleet = try await TestFleet.start(workers: 0)
    try await fleet.pool.withConnection {
      _ = try await $0.script("update schema_routines set checksum = 0, revision = revision + 1")
    }
    for words in [["migrate"], ["migrate", "--plan"], ["doctor"]] {
      let refused = try await fleet.run(words)
      #expect(refused.status == .exited(1), "\(words): \(refused.output)")
      #expect(refused.output.contains("made by a newer program"), "\(words): \(refused.output)")
    }
    #expect(try await fleet.run(["migrate", "--downgrade"]).output.contains("made anew"))
    #expect(try await fleet.run(["migrate"]).output.contains("up to date"))
    await fleet.stop()
  }

  @Test("migrations of a newer program are refused with the advice to upgrade, also with --downgrade")
  func migrationsOfANewerProgramAreKept() async throws {
    let fleet = try await TestFleet.start(workers: 0)
    try await fleet.pool.withConnection {
      _ = try await $0.script(
        "insert into schema_history (number, name, checksum) select max(number) + 1, 'newer', 0 from schema_history")
    }
    for words in [["migrate"], ["migrate", "--downgrade"]] {
      let refused = try await fleet.run(words)
      #expect(refused.status == .exited(1), "\(words): \(refused.output)")
      #expect(refused.output.contains("'reelhaul migrate --downgrade' cannot undo migrations"), "\(refused.output)")
    }
    await fleet.stop()
  }

  @Test("a missing PostgreSQL schema is reported with CREATE SCHEMA, and can be used once it exists")
  func aSchemaOfItsOwnIsMadeFirst() async throws {
    let fleet = try await TestFleet.start(workers: 0)
    let database = try await TestPostgres.shared.database()
    let url = database + (database.contains("?") ? "&" : "?") + "options=-csearch_path%3Dfilms"
    let own = ["--postgres", url, "--topic-prefix", "films."]
    for (words, code) in [(["migrate"], 3 as Int32), (["migrate", "--plan"], 3), (["doctor"], 1)] {
      let refused = try await fleet.run(words + own)
      #expect(refused.status == .exited(code), "\(words): \(refused.output)")
      #expect(refused.output.contains("CREATE SCHEMA films;"), "\(words): \(refused.output)")
    }
    let loop = EventLoop(name: "test")
    let pool = PostgresPool(loop: loop, configuration: try PostgresConfiguration(url: database), size: 1)
    try await pool.withConnection { _ = try await $0.script("CREATE SCHEMA films") }
    await pool.close()
    loop.shutdown()
    let done = try await fleet.run(["migrate"] + own)
    #expect(done.status == .exited(0))
    #expect(done.output.contains("topic films.commands: made, with 4 partitions"), "what is there: \(done.output)")
    await fleet.stop()
  }
}
