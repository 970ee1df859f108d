import ReelhaulSystem

/// What many readers ask for at once is read from the store once.
actor Snapshots {
  private struct Entry {
    var bytes: Task<[UInt8], any Error>
    var at: BootInstant
  }

  private var entries: [String: Entry] = [:]

  /// What `read` returned for this key at most `age` ago.
  func value(_ key: String, age: Duration, _ read: @escaping @Sendable () async throws -> [UInt8]) async throws
    -> [UInt8]
  {
    if let entry = entries[key], .now - entry.at < age { return try await entry.bytes.value }
    // Nobody asks for these any more.
    if entries.count > 1000 { entries = entries.filter { .now - $0.value.at < .seconds(10) } }
    let entry = Entry(bytes: Task { try await read() }, at: .now)
    entries[key] = entry
    do {
      return try await entry.bytes.value
    } catch {
      entries[key] = nil
      throw error
    }
  }
}
