import CDisk
import Glibc
import ReelhaulSystem
import TaskCore

/// Knows which bytes of the files below a directory a power cut would leave: those that were written before a sync began
/// that has succeeded. It sees the calls of this process, from its making to its end.
package final class DiskWatch: Sendable {
  /// What reached stable storage, or changed a name, in order. Paths are relative to the directory that is watched.
  package enum Step: Hashable, Sendable {
    case synced(String)
    case renamed(to: String)
  }

  private struct File {
    var written = ByteRanges()
    var stable = ByteRanges()
  }

  private struct State {
    var files: [String: File] = [:]
    /// What each thread's sync covers.
    var covered: [pthread_t: ByteRanges] = [:]
    var steps: [Step] = []
    var holdsSyncs = false
    var held = 0
    /// With which the next sync fails.
    var failure: Int32 = 0
  }

  private let path: String
  private let state = Condition(State())

  private static let watches = Lock<[String: DiskWatch]>([:])
  private static let isInstalled: Void = rh_observe_disk { call, fd, name, offset, length, result in
    DiskWatch.observe(call, fd, name, offset, length, result)
  }

  /// Runs `body` while the files below the directory `path` are watched.
  package static func run<Result>(
    below path: String, isolation: isolated (any Actor)? = #isolation, _ body: (DiskWatch) async throws -> Result
  ) async rethrows -> Result {
    _ = isInstalled
    let watch = DiskWatch(path)
    watches.withLock { $0[watch.path] = watch }
    defer {
      watch.releaseSyncs()
      watches.withLock { $0[watch.path] = nil }
    }
    return try await body(watch)
  }

  private init(_ path: String) {
    self.path = path.hasSuffix("/") ? path : path + "/"
  }

  /// The bytes of the file `name`, wherever it lies, that a power cut would leave.
  package func stable(_ name: String) -> ByteRanges {
    state.withLock { $0.files[name]?.stable ?? ByteRanges() }
  }

  /// All bytes that were written to the file `name`.
  package func written(_ name: String) -> ByteRanges {
    state.withLock { $0.files[name]?.written ?? ByteRanges() }
  }

  package var steps: [Step] { state.withLock { $0.steps } }

  /// From now on syncs do not begin at the device before ``releaseSyncs()``.
  package func holdSyncs() { state.withLock { $0.holdsSyncs = true } }

  /// How many syncs wait.
  package var heldSyncs: Int { state.withLock { $0.held } }

  /// Lets the next sync fail with this `errno`. As with a real device, what it was to make stable is lost then, although
  /// it can be read, and the sync after it is a success.
  package func failNextSync(_ errno: Int32) { state.withLock { $0.failure = errno } }

  package func releaseSyncs() {
    state.withLock { $0.holdsSyncs = false }
    state.broadcast()
  }

  // MARK: The calls

  private static func observe(
    _ call: rh_disk_call, _ fd: Int32, _ name: UnsafePointer<CChar>?, _ offset: Int64, _ length: Int64,
    _ result: UnsafePointer<Int64>?
  ) -> Int32 {
    let all = watches.withLock { $0 }
    guard !all.isEmpty, var path = path(of: fd) else { return 0 }
    if let name { path += "/" + String(cString: name) }
    guard let watch = all.first(where: { (path + "/").hasPrefix($0.key) })?.value else { return 0 }
    let relative = String(path.dropFirst(watch.path.utf8.count))
    switch (call, result?.pointee) {
    case (RH_DISK_WRITE, let count?) where count > 0: watch.wrote(offset..<offset + count, to: relative)
    case (RH_DISK_SYNC, nil): return watch.syncBegins(relative)
    case (RH_DISK_SYNC, let code?): watch.syncEnded(relative, isGood: code == 0)
    case (RH_DISK_RENAME, 0?): watch.state.withLock { $0.steps.append(.renamed(to: relative)) }
    default: break
    }
    return 0
  }

  private static func path(of fd: Int32) -> String? {
    var buffer = [CChar](repeating: 0, count: 4096)
    let count = readlink("/proc/self/fd/\(fd)", &buffer, buffer.count)
    guard count > 0 else { return nil }
    return String(decoding: buffer.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// Names are unique below a root, and a file keeps its bytes when it is renamed: its last name tells it.
  private static func name(_ path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? ""
  }

  private func wrote(_ range: Range<Int64>, to path: String) {
    state.withLock { state in
      let name = Self.name(path)
      state.files[name, default: File()].written.insert(range)
      state.files[name]?.stable.remove(range)
    }
  }

  private func syncBegins(_ path: String) -> Int32 {
    state.withLock { state in
      state.held += 1
      state.covered[pthread_self()] = state.files[Self.name(path)]?.written
    }
    return state.wait(
      until: { !$0.holdsSyncs },
      then: { state in
        state.held -= 1
        defer { state.failure = 0 }
        return state.failure
      })
  }

  private func syncEnded(_ path: String, isGood: Bool) {
    state.withLock { state in
      let covered = state.covered.removeValue(forKey: pthread_self())
      guard isGood else {
        let name = Self.name(path)
        let lost = covered?.subtracting(state.files[name]?.stable ?? ByteRanges())
        for range in lost?.ranges ?? [] { state.files[name]?.written.remove(range) }
        return
      }
      state.steps.append(.synced(path))
      if let covered { state.files[Self.name(path)]?.stable.formUnion(covered) }
    }
  }
}
