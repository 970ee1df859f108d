import Glibc
import ReelhaulSystem
import ReelhaulTasks
import TaskStore
import TransferEngine

/// The scratch directory of one run. It is made when it is first needed.
///
/// It is on the volume of the task's storage, so that results can be moved to their place. Otherwise it is on another
/// volume of the worker, or among the system's temporary files. Its name contains the epoch, so no other run uses it.
struct ScratchDirectory: Sendable {
  private enum Place: Sendable {
    case volume(StorageRoot)
    case system
  }

  let name: ScratchName
  private let place: Place
  private let made = Lock<String?>(nil)
  private let isOver = Lock(false)
  /// Lets it be made or removed by one caller at a time.
  private let changing = AsyncGate()

  init(_ claim: Claim, roots: StorageRoots?) {
    name = ScratchName(task: claim.spec.id, epoch: claim.epoch)
    let lane = LaneKey(claim.spec)
    let names = [lane.storage] + (roots?.storage.roots.keys.sorted() ?? [])
    place = names.lazy.compactMap { roots?[$0] }.first.map(Place.volume) ?? .system
  }

  /// The root with the scratch directory; nil if the directory is among the system's temporary files.
  var root: StorageRoot? {
    if case .volume(let root) = place { root } else { nil }
  }

  /// Throws ``OwnershipLostError`` after the end of the run: what is made then would stay.
  func path() async throws -> String {
    try await changing.run { [self] in
      guard !isOver.withLock({ $0 }) else { throw OwnershipLostError() }
      if let path = made.withLock({ $0 }) { return path }
      let path: String
      do {
        switch place {
        case .volume(let root): path = try await root.withVolume { [name] in try $0.makeScratch(name) }
        case .system: path = try Self.makeTemporary(name)
        }
      } catch let error as StorageError {
        throw TaskError.wait(error.message, for: .seconds(5), code: error.failure.code.rawValue)
      } catch {
        throw TaskError.wait("the scratch directory cannot be made: \(error)", for: .seconds(5))
      }
      made.withLock { $0 = path }
      return path
    }
  }

  private static let prefix = "reelhaul-scratch-"

  /// Makes it among the system's temporary files, and removes those of the task's earlier runs, as ``Volume`` does.
  private static func makeTemporary(_ name: ScratchName) throws(SystemError) -> String {
    let base = TemporaryDirectory.base
    for entry in try FileDescriptor.open(base, O_RDONLY | O_DIRECTORY).entries() where entry.hasPrefix(prefix) {
      guard let other = ScratchName(String(entry.dropFirst(prefix.count).prefix { $0 != "." })) else { continue }
      if other.task == name.task, other.epoch < name.epoch { removeTree("\(base)/\(entry)") }
    }
    return try TemporaryDirectory.make(prefix: "\(prefix)\(name)")
  }

  func remove() async {
    try? await changing.run { [self] in
      isOver.withLock { $0 = true }
      guard let path = made.withLock({ $0 }) else { return }
      switch place {
      case .volume(let root): try await root.files.run { _ = removeTree(path) }
      case .system: removeTree(path)
      }
    }
  }
}
