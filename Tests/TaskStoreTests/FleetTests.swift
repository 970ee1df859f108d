import TaskStore
import Testing

/// A store belongs to one fleet.
@Suite struct FleetTests {
  @Test("only one of several topic prefixes can bind the store", arguments: StoreKind.allCases)
  func ofManyFleetsOneGetsTheStore(_ kind: StoreKind) async throws {
    try await withStore(kind) { fixture in
      let store = fixture.store
      #expect(try await store.topicPrefix() == nil)
      let refusals = try await withThrowingTaskGroup(of: OtherFleet?.self) { group in
        for number in 0..<8 {
          group.addTask {
            do {
              try await store.bind(topicPrefix: "fleet-\(number).")
              return nil
            } catch StoreError.otherFleet(let fleets) {
              return fleets
            }
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      let prefix = try #require(try await store.topicPrefix())
      #expect(refusals.count { $0 == nil } == 1)
      #expect(refusals.allSatisfy { $0 == nil || $0?.recorded == prefix && $0?.configured != prefix })
      try await store.bind(topicPrefix: prefix)
      let other = StoreError.otherFleet(OtherFleet(recorded: prefix, configured: ""))
      await #expect(throws: other) { try await store.bind(topicPrefix: "") }
    }
  }
}
