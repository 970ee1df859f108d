import TaskCore

/// The storage that all workers share. A power cut destroys bytes and names that are not synced.
@MainActor final class SimulatedDisk {
  struct File {
    /// The staging name. It stays with the file as a mark.
    let mark: String
    /// The version of the source to which each block belongs.
    var blocks: [Int: Int] = [:]
    var stable: [Int: Int] = [:]
    /// If false, a power cut may undo its last rename.
    var isNameStable = false
  }

  enum Renamed { case done, exists, missing }

  /// A sync that is under way: the bytes that it covers, and the number of power cuts at its start.
  struct Sync {
    fileprivate let mark: String
    fileprivate let covered: [Int: Int]
    fileprivate let cuts: Int
  }

  private let simulation: Simulation
  /// The staging files by name.
  private(set) var staged: [String: File] = [:]
  /// The published files, by the task that published them.
  private(set) var published: [UniqueID: File] = [:]
  private(set) var cuts = 0

  init(_ simulation: Simulation) {
    self.simulation = simulation
  }

  func create(_ name: String) {
    if staged[name] == nil { staged[name] = File(mark: name) }
  }

  func remove(_ name: String) { staged[name] = nil }

  /// Writes a block of the `version` of the source. All writers of one file write the same bytes.
  func write(_ block: Int, of version: Int, to name: String) {
    let former = staged[name]?.blocks.updateValue(version, forKey: block)
    simulation.check(former == nil || former == version, "a block of \(name) is overwritten with another version")
  }

  /// All bytes that are written now are on stable storage once the sync has ended.
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

  /// Gives a file its name, unless another file has it.
  func rename(_ name: String, to task: UniqueID) -> Renamed {
    guard var file = staged[name] else { return .missing }
    guard published[task] == nil else { return .exists }
    file.isNameStable = false
    published[task] = file
    staged[name] = nil
    return .done
  }

  func syncDirectory(of task: UniqueID) { published[task]?.isNameStable = true }

  /// Destroys all or some of the data that is not synced.
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
      // Everything that exists after the restart is on stable storage.
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
