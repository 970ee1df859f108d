import TaskCore

/// The storage that all workers share. A power cut takes what was not synced: bytes, and names.
@MainActor final class SimulatedDisk {
  struct File {
    /// The staging name, which stays with the file as a mark.
    let mark: String
    /// The version of the source that each block is of.
    var blocks: [Int: Int] = [:]
    var stable: [Int: Int] = [:]
    /// A power cut may undo its last rename.
    var isNameStable = false
  }

  enum Renamed { case done, exists, missing }

  /// A sync under way: what it covers, and before which power cut.
  struct Sync {
    fileprivate let mark: String
    fileprivate let covered: [Int: Int]
    fileprivate let cuts: Int
  }

  private let simulation: Simulation
  /// By staging name.
  private(set) var staged: [String: File] = [:]
  /// By the task whose destination it is.
  private(set) var published: [UniqueID: File] = [:]
  private(set) var cuts = 0

  init(_ simulation: Simulation) {
    self.simulation = simulation
  }

  func create(_ name: String) {
    if staged[name] == nil { staged[name] = File(mark: name) }
  }

  func remove(_ name: String) { staged[name] = nil }

  /// Writes a block of the `version` of the source. All who write one file write the same.
  func write(_ block: Int, of version: Int, to name: String) {
    let former = staged[name]?.blocks.updateValue(version, forKey: block)
    simulation.check(former == nil || former == version, "a block of \(name) is overwritten with another version")
  }

  /// What is written now is stable once the sync has ended.
  func beginSync(_ name: String) -> Sync {
    Sync(mark: name, covered: staged[name]?.blocks ?? [:], cuts: cuts)
  }

  func end(_ sync: Sync) {
    guard sync.cuts == cuts else { return }
    staged[sync.mark]?.stable.merge(sync.covered) { $1 }
    for (task, file) in published where file.mark == sync.mark {
      published[task]?.stable.merge(sync.covered) { $1 }
    }
  }

  /// Gives a file its name, unless another one has it.
  func rename(_ name: String, to task: UniqueID) -> Renamed {
    guard var file = staged[name] else { return .missing }
    guard published[task] == nil else { return .exists }
    file.isNameStable = false
    published[task] = file
    staged[name] = nil
    return .done
  }

  func syncDirectory(of task: UniqueID) { published[task]?.isNameStable = true }

  /// Everything that was not synced is gone, or some of it is.
  func cutPower() {
    cuts += 1
    simulation.note("power cut")
    for task in published.keys.sorted() {
      guard let file = published[task], !file.isNameStable, simulation.isLucky else { continue }
      published[task] = nil
      staged[file.mark] = file
    }
    for name in staged.keys.sorted() { staged[name].map { staged[name] = survivor(of: $0) } }
    for task in published.keys.sorted() {
      published[task].map { published[task] = survivor(of: $0) }
      // What is there after the restart is there for good.
      published[task]?.isNameStable = true
    }
  }

  private func survivor(of file: File) -> File {
    var file = file
    // In their order, so that a seed always takes the same ones.
    for (block, version) in file.blocks.sorted(by: { $0.key < $1.key }) {
      if file.stable[block] != version, simulation.isLucky { file.blocks[block] = nil }
    }
    file.stable = file.blocks
    return file
  }
}
