import Glibc
import ReelhaulSystem
import ReelhaulTasks
import TaskStore
import TransferEngine

/// The scratch directory of one run. It is made when it is first needed.
///
/// It is on the volume of the task's storage, so that results can be moved to their place. Otherwise it is on the first
/// volume of the worker that can be used, or among the system's temporary files. Its name contains the epoch, so no other
/// run uses it.
struct ScratchDirectory: Sendable {
  private enum State: Sendable {
    case none
    case made(path: String, root: StorageRoot?)
    case over
  }

  let name: ScratchName
  /// Those on which it may be; none for the system's temporary files.
  private let roots: [StorageRoot]
  private let state = Lock(State.none)
  /// Lets it be made or removed by one caller at a time.
  private let changing = AsyncGate()

  init(_ claim: Claim, roots: StorageRoots?) {
    name = ScratchName(task: claim.spec.id, epoch: claim.epoch)
    let own = roots?[LaneKey(claim.spec).storage]
    self.roots = own.map { [$0] } ?? roots?.storage.roots.keys.sorted().compactMap { roots?[$0] } ?? []
  }

  /// The root with the scratch directory; nil if it is not made, or among the system's temporary files.
  var root: StorageRoot? {
    state.withLock { if case .made(_, let root) = $0 { root } else { nil } }
  }

  /// Throws ``OwnershipLostError`` after the end of the run: what is made then would stay.
  func path() async throws -> String {
    try await changing.run { [self] in
      switch state.withLock({ $0 }) {
      case .over: throw OwnershipLostError()
      case .made(let path, _): return path
      case .none: break
      }
      let (path, root) = try await make()
      state.withLock { $0 = .made(path: path, root: root) }
      return path
    }
  }

  private func make() async throws(TaskError) -> (path: String, root: StorageRoot?) {
    var failure: StorageError?
    do {
      for root in roots {
        do {
          return (try await root.withVolume { [name] in try $0.makeScratch(name) }, root)
        } catch let error as StorageError {
          failure = failure ?? error
        }
      }
      if let failure { throw failure }
      return (try Self.makeTemporary(name), nil)
    } catch let error as StorageError {
      throw TaskError.wait(error.message, for: .seconds(5), code: error.failure.code.rawValue)
    } catch {
      throw TaskError.wait("the scratch directory cannot be made: \(error)", for: .seconds(5))
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
      let last = state.withLock { state in
        defer { state = .over }
        return state
      }
      guard case .made(let path, let root) = last else { return }
      if let root { try await root.files.run { _ = removeTree(path) } } else { removeTree(path) }
    }
  }
}
