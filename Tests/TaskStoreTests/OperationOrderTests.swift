import TaskCore
import Testing

@testable import TaskStore

@Suite struct OperationOrderTests {
  private static let ids = (0..<3).map { UniqueID(high: 1, low: $0) }

  private static func operation(
    _ action: ControlAction, at time: Int64, queues: [String]? = nil,
    _ change: (inout OperationFilter) -> Void = { _ in }
  ) -> TaskOperation {
    var filter = OperationFilter()
    change(&filter)
    return TaskOperation(
      id: UniqueID(high: 2, low: UInt64(time)), action: action, selection: .filter(filter), queues: queues,
      createdAt: Timestamp(microseconds: time))
  }

  @Test("an operation waits for older ones with another action, as long as it looks for tasks") func order() {
    let (older, younger) = (Self.operation(.pause, at: 1), Self.operation(.resume, at: 2))
    #expect(younger.waits(for: older) && !older.waits(for: younger) && !younger.waits(for: younger))
    #expect(!Self.operation(.pause, at: 2).waits(for: older))
    #expect(Self.operation(.prioritize(1), at: 2).waits(for: Self.operation(.prioritize(2), at: 1)))
    var canceled = younger
    canceled.state = .canceled
    var walked = younger
    walked.progress.isWalked = true
    #expect(!canceled.waits(for: older) && !walked.waits(for: older))
  }

  @Test("operations that can have no task in common do not wait", arguments: [false, true])
  func apart(swaps: Bool) {
    func waits(_ one: (inout OperationFilter) -> Void, _ other: (inout OperationFilter) -> Void) -> Bool {
      let (one, other) = swaps ? (other, one) : (one, other)
      return Self.operation(.resume, at: 20, other).waits(for: Self.operation(.pause, at: 10, one))
    }
    #expect(!waits({ $0.queues = ["a", "b"] }, { $0.queues = ["c"] }))
    #expect(waits({ $0.queues = ["a", "b"] }, { $0.queues = ["b"] }))
    #expect(waits({ $0.queues = ["a"] }, { $0.kinds = [.noop] }))
    #expect(!waits({ $0.kinds = [.noop] }, { $0.kinds = [.download] }))
    #expect(!waits({ $0.hosts = ["a"] }, { $0.hosts = ["b"] }))
    #expect(!waits({ $0.labels = ["k=a", "l"] }, { $0.labels = ["k=b"] }))
    #expect(waits({ $0.labels = ["k=a", "l"] }, { $0.labels = ["k", "l=b", "m=c"] }))
    #expect(!waits({ $0.before = Timestamp(microseconds: 5) }, { $0.after = Timestamp(microseconds: 5) }))
    #expect(waits({ $0.before = Timestamp(microseconds: 6) }, { $0.after = Timestamp(microseconds: 5) }))
    // What the older one changes, or what a task may have besides, tells nothing.
    #expect(waits({ $0.states = [.queued] }, { $0.states = [.paused] }))
    #expect(waits({ $0.codes = ["a"] }, { $0.codes = ["b"] }))
    #expect(waits({ $0.text = "a" }, { $0.text = "b" }))
  }

  @Test("no task of the older one is created after it, and a token for some queues reaches no other") func reach() {
    let late = Self.operation(.resume, at: 20) { $0.after = Timestamp(microseconds: 15) }
    #expect(!late.waits(for: Self.operation(.pause, at: 10)) && late.waits(for: Self.operation(.pause, at: 16)))
    let limited = Self.operation(.pause, at: 10, queues: ["a", "b"]) { $0.queues = ["b", "c"] }
    #expect(limited.reachableQueues == ["b"])
    #expect(!Self.operation(.resume, at: 20) { $0.queues = ["a", "c"] }.waits(for: limited))
    let none = Self.operation(.pause, at: 10, queues: ["a"]) { $0.queues = ["b"] }
    #expect(!Self.operation(.resume, at: 20) { $0.queues = ["a", "b"] }.waits(for: none))
  }

  @Test("operations on given tasks wait if they have one in common, or if it cannot be known") func named() {
    func named(_ action: ControlAction, at time: Int64, _ ids: ArraySlice<UniqueID>) -> TaskOperation {
      var operation = Self.operation(action, at: time)
      operation.selection = .ids(Array(ids))
      return operation
    }
    let older = named(.pause, at: 1, Self.ids[..<2])
    #expect(named(.resume, at: 2, Self.ids[1...]).waits(for: older))
    #expect(!named(.resume, at: 2, Self.ids[2...]).waits(for: older))
    #expect(Self.operation(.resume, at: 2) { $0.queues = ["a"] }.waits(for: older))
  }
}
