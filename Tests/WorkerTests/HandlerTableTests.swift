import TaskCore
import TaskStore
import Testing

@testable import WorkerCore

@Suite struct HandlerTableTests {
  private struct Handler: KindHandler {
    let kind: TaskKind
    var aliases: [TaskKind] = []

    func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome { .stopped }
  }

  private static let (thumbnails, stills) = (TaskKind(rawValue: "thumbnails"), TaskKind(rawValue: "stills"))

  @Test("a kind and its former names have one handler, and no other kind is claimed")
  func kinds() throws {
    let table = try HandlerTable([Handler(kind: Self.thumbnails, aliases: [Self.stills]), Handler(kind: .noop)])
    #expect(table.kinds == [.noop, Self.stills, Self.thumbnails])
    #expect(table[Self.stills]?.kind == Self.thumbnails && table[.download] == nil)
  }

  @Test("two handlers of one kind are refused, also where one of them has it as a former name")
  func duplicates() throws {
    let handlers = [Handler(kind: Self.thumbnails), Handler(kind: Self.thumbnails)]
    let error = #expect(throws: DuplicateKind.self) { try HandlerTable(handlers) }
    #expect(error?.kind == Self.thumbnails)
    let aliased = [Handler(kind: Self.thumbnails), Handler(kind: .noop, aliases: [Self.thumbnails])]
    #expect(throws: DuplicateKind.self) { try HandlerTable(aliased) }
  }
}
