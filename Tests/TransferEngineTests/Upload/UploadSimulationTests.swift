import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Uploads over the real targets, with owners that are stopped at any step, lost and late answers of the store and of the
/// records, uploads that expire, a source that changes, and somebody else at the destination.
///
/// `REELHAUL_SIMULATION_SEEDS=200` runs the first 200 seeds instead of 5, and `REELHAUL_SIMULATION_SEED=17` that one alone.
@Suite struct UploadSimulationTests {
  static let seeds: Range<UInt64> = {
    let environment = ProcessEnvironment.all
    if let seed = environment["REELHAUL_SIMULATION_SEED"].flatMap(UInt64.init) { return seed..<seed + 1 }
    return 0..<(environment["REELHAUL_SIMULATION_SEEDS"].flatMap(UInt64.init) ?? 5)
  }()

  private static let owners = 40

  @Test(
    "an upload ends whole, once, of one version, over nobody's file, and leaves nothing",
    arguments: UploadSimulation.Way.allCases,
    seeds)
  func ends(way: UploadSimulation.Way, seed: UInt64) async throws {
    var options = StoreOptions()
    options.minimumPartSize = 1
    options.tusExtensions.removeAll { seed % 3 == 2 && $0 == "checksum" }
    try await UploadHarness.run(options: options) { harness in
      let simulation = try UploadSimulation(way, seed: seed, harness: harness)
      var end: UploadOutcome?
      // A user cancels every fifth.
      let cancelsAfter = seed % 5 == 4 ? 1 + Int(seed % 3) : Int.max
      for owner in 0..<Self.owners where end == nil && owner < cancelsAfter {
        if owner == 10 { simulation.state.withLock { $0.isFaulty = false } }
        let outcome = await simulation.run()
        switch outcome {
        case .succeeded: end = outcome
        case .failed(let failure) where failure.class == .fail: end = outcome
        case .failed, .stopped: break
        }
      }
      simulation.state.withLock { $0.isFaulty = false }
      await simulation.settle()
      if end == nil { #expect(cancelsAfter < Self.owners, "it never ends\n\(simulation.story)") }
      if end?.object == nil, let checkpoint = simulation.state.withLock({ $0.checkpoint }) {
        // It is canceled, or removed.
        try await harness.engine.abort(simulation.spec, from: checkpoint)
      }
      try await check(simulation, end)
    }
  }

  private func check(_ simulation: UploadSimulation, _ end: UploadOutcome?) async throws {
    let (harness, way) = (simulation.harness, simulation.way)
    let state = simulation.state.withLock { $0 }
    func expect(_ holds: Bool, _ what: String, at location: SourceLocation = #_sourceLocation) {
      #expect(
        holds, "\(what): \(end.map { "\($0)" } ?? "canceled")\n\(simulation.story)", sourceLocation: location)
    }
    let most = 1 + state.lostJoins + (way == .tusWhole ? state.lostCreations : 0)
    if way == .tusWhole {
      // A file that an owner has made which was stopped meanwhile is taken away beside the next ones.
      try await eventually("there are more files\n\(simulation.story)", within: .seconds(20)) {
        harness.store.objects.count <= most
      }
    }
    let objects = harness.store.objects
    let bytes = objects.values.compactMap(\.bytes)
    if let foreign = state.foreign {
      expect(objects[simulation.key]?.bytes == foreign, "somebody else's file was replaced")
      expect(end?.object == nil, "somebody else's file is taken for this task's")
    } else {
      expect(bytes.allSatisfy { state.versions.contains($0) }, "a file is not a version of the source")
      expect(objects.count <= most, "there are \(objects.count) files")
    }
    switch end {
    case .succeeded(let object, let told):
      expect(!bytes.isEmpty, "there is no file")
      expect(told == object.size ?? told && bytes.contains { Int64($0.count) == told }, "it has another size than told")
      expect(objects.count == 1 || object.remark != nil, "a second file is not told")
      let size = state.checkpoint?.identity.size
      let version = state.versions.first { Int64($0.count) == size }
      expect(version.map { bytes.contains($0) } ?? false, "it is another version than the recorded one")
    case .failed(let failure):
      expect(failure.code == .destinationExists, "it fails")
      expect(state.foreign != nil || way == .put, "nobody else was there")
    case .stopped, nil: break
    }
    let left = way.isTus ? state.lostCreations : 0
    // A request of an owner that was stopped may still be under way.
    try await eventually("uploads are left: \(harness.store.uploads.keys)\n\(simulation.story)", within: .seconds(20)) {
      harness.store.uploads.count <= left
    }
  }
}
