import CommandLineKit
import TaskCore
import TaskStore
import Testing

@testable import reelhaul

@Suite struct LimitArgumentsTests {
  @Test(
    "names of limits are normalised like the names in tasks",
    arguments: [
      ("total", nil, LimitScope.total, ""), ("host", "Example.org", .host, "example.org"),
      ("host", "::1", .host, "::1"),
      ("queue", "archive", .queue, "archive"), ("kind", "download", .kind, "download"),
      ("storage", "nas", .storage, "nas"),
    ] as [(String, String?, LimitScope, String)])
  func namesAreThoseOfTasks(_ word: String, _ name: String?, _ scope: LimitScope, _ expected: String) throws {
    #expect(try LimitArguments.bucket(word, name) == (scope, expected))
  }

  @Test(
    "names that no task can have are refused",
    arguments: [
      ("total", "x"), ("host", nil), ("host", ""), ("host", "https://example.org"), ("host", "example.org:80"),
      ("host", "a b"), ("queue", ""), ("queue", "a b"), ("kind", nil), ("storage", "a/b"), ("storage", ""),
    ] as [(String, String?)])
  func otherNamesAreRefused(_ word: String, _ name: String?) {
    #expect(throws: UsageError.self) { try LimitArguments.bucket(word, name) }
  }

  @Test("names that no worker or task knows are doubted")
  func namesThatNobodyKnowsAreDoubted() {
    let worker = WorkerDocument(
      id: UniqueID(high: 1, low: 1), host: "h", pid: 1, startedAt: Timestamp(microseconds: 0),
      leaseUntil: Timestamp(microseconds: 0), isLive: true, running: 0, kinds: [.download],
      volumes: ["default": UniqueID(high: 2, low: 2)], labels: [:], bytesPerSecond: 0)
    let backlog = Backlog(kinds: [.copy], storages: ["nas"])
    func doubt(_ scope: LimitScope, _ name: String, _ live: [WorkerDocument]) -> String? {
      LimitArguments.doubt(scope, name, live: live, backlog)
    }
    for (scope, name) in [(LimitScope.kind, "download"), (.kind, "copy"), (.storage, "default"), (.storage, "nas")] {
      #expect(doubt(scope, name, [worker]) == nil)
    }
    #expect(
      doubt(.kind, "downlaod", [worker])
        == "No live worker has the kind downlaod, and no task waits for it: did you mean download?")
    #expect(doubt(.storage, "tape", [worker]) == "No live worker has the storage tape, and no task waits for it.")
    #expect(doubt(.storage, "tape", []) == nil, "nobody can tell")
    #expect(doubt(.queue, "tape", [worker]) == nil, "a queue is there once a task names it")
  }

  @Test("a limit is a whole number or the word none")
  func limitsAreWholeNumbersOrNone() throws {
    #expect(try LimitArguments.limit("none") == nil)
    #expect(try LimitArguments.limit("0") == 0)
    #expect(try LimitArguments.limit("1000000") == 1_000_000)
    for text in ["", "-1", "+1", "1.5", "1000001", "99999999999999999999", "None", "٣"] {
      #expect(throws: UsageError.self, "\(text)") { try LimitArguments.limit(text) }
    }
  }

  @Test("a weight is a positive number within its bounds")
  func weightsArePositiveNumbers() throws {
    #expect(try LimitArguments.weight("0.5") == 0.5)
    #expect(try LimitArguments.weight("1000") == 1000)
    for text in ["", "0", "-1", "1e2", "nan", "inf", "1001", "0.0001", "1.2.3", "."] {
      #expect(throws: UsageError.self, "\(text)") { try LimitArguments.weight(text) }
    }
  }
}
