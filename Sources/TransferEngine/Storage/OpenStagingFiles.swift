import ReelhaulSystem

/// Bounds how many staging files of a process are open at once, so that a thousand slow transfers need few descriptors
/// beside their sockets. A file that was not used of late is closed; it opens itself again when it is used.
final class OpenStagingFiles: Sendable {
  static let standardLimit = 128

  fileprivate struct Entry {
    weak var file: StagingFile?
  }

  fileprivate struct State {
    var entries: [Entry] = []
    /// The entry to look at next.
    var hand = 0
  }

  private let limit: Int
  private let state = Lock(State())

  init(limit: Int = standardLimit) {
    self.limit = max(1, limit)
  }

  /// `file` has been opened. Closes others if too many are open now.
  func opened(_ file: StagingFile) {
    let surplus = state.withLock { state in
      let surplus = state.makeRoom(below: limit)
      state.entries.append(Entry(file: file))
      return surplus
    }
    // Without the lock of the list: a file that opens itself has its own lock, and then comes here.
    for file in surplus { file.close() }
  }
}

extension OpenStagingFiles.State {
  /// Returns the files to close, and forgets them and those that are gone.
  fileprivate mutating func makeRoom(below limit: Int) -> [StagingFile] {
    var surplus: [StagingFile] = []
    // The second look at a file finds it unused, unless it was used in between.
    var looks = 2 * entries.count
    while entries.count >= limit, looks > 0 {
      looks -= 1
      hand %= entries.count
      if let file = entries[hand].file {
        if file.takeUse() {
          hand += 1
          continue
        }
        surplus.append(file)
      }
      entries.remove(at: hand)
    }
    return surplus
  }
}
