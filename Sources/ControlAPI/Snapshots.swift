import ReelhaulSystem

/// What many readers ask for at once is read from the store once.
actor Snapshots {
  /// What is asked for, and of which part of the fleet.
  struct Key: Hashable, Sendable {
    var name: String
    /// Nil for all.
    var queues: Set<String>?
    var query: TaskListQuery?

    init(_ name: String, of queues: Set<String>? = nil, _ query: TaskListQuery? = nil) {
      (self.name, self.queues, self.query) = (name, queues, query)
    }
  }

  private struct Entry {
    let bytes: SharedValue<[UInt8]>
    /// When it was read; nil while it is being read.
    var at: BootInstant?

    func isYounger(than age: Duration) -> Bool { at.map { .now - $0 < age } ?? true }
  }

  private var entries: [Key: Entry] = [:]

  /// What `read` returned for this key at most `age` ago.
  func value(_ key: Key, age: Duration, _ read: @escaping @Sendable () async throws -> [UInt8]) async throws
    -> [UInt8]
  {
    if let entry = entries[key], entry.isYounger(than: age) { return try await entry.bytes.value }
    // Nobody asks for these any more.
    entries = entries.filter { $0.value.isYounger(than: .seconds(10)) }
    let bytes = SharedValue { [self] in
      do {
        let bytes = try await read()
        await ended(key, at: .now)
        return bytes
      } catch {
        await ended(key, at: nil)
        throw error
      }
    }
    entries[key] = Entry(bytes: bytes)
    return try await bytes.value
  }

  /// What was read of these has changed.
  func forget(_ names: Set<String>) {
    entries = entries.filter { !names.contains($0.key.name) }
  }

  /// It was read, or it could not be.
  private func ended(_ key: Key, at time: BootInstant?) {
    if let time { entries[key]?.at = time } else { entries[key] = nil }
  }
}
