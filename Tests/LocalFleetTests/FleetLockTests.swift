import ReelhaulSystem
import Testing

@testable import LocalFleet

@Suite struct FleetLockTests {
  @Test("one fleet at a time runs on a data directory") func exclusion() throws {
    let directory = try TemporaryDirectory()
    let layout = FleetLayout(root: directory.path)
    do {
      let first = try FleetLock(layout)
      #expect(throws: LocalFleetError.self) { try FleetLock(layout) }
      withExtendedLifetime(first) {}
    }
    // It ends with its holder.
    _ = try FleetLock(layout)
    withExtendedLifetime(directory) {}
  }
}
