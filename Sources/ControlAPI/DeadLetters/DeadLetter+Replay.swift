import ReelhaulClient
import ReelhaulCodec
import ReelhaulMessages
import TaskCore
import TaskStore

extension DeadLetter {
  /// The command to send again, or the corrected one in `body`. Without an id of its own it gets one that follows from
  /// where the refused one came from and from what is sent: sending the same again changes nothing, also from another
  /// letter of the same command. A control always gets that, because its former id has its refusal.
  ///
  /// The time is a part of where it came from, because a topic that is created again counts its offsets from 0.
  package func replay(_ body: [UInt8]? = nil, by actor: String?) throws(Rejection) -> Command {
    guard body != nil || !isCut else {
      throw Rejection(.tooLarge, "the topic has only the beginning of this command: send the whole command")
    }
    let bytes = body ?? value
    let time = origin.timestamp < 0 ? "" : "\(origin.timestamp) "
    let place = Array("reelhaul replay \(origin.topic) \(origin.partition) \(origin.offset) \(time)".utf8)
    let id = UniqueID(derivedFrom: place + value + [0] + bytes)
    // Whoever corrects a command can correct a misspelt field, too.
    let command =
      body == nil
      ? try CommandDecoder.decode(bytes, makeID: { commandID ?? id })
      : try CommandDecoder.decode(line: bytes, makeID: { commandID ?? id })
    switch command {
    case .submit(let spec): return .submit(spec)
    case .control(var control):
      control.id = id
      control.actor = actor ?? control.actor
      return .control(control)
    }
  }

  package var mark: DeadLetterID {
    DeadLetterID(partition: partition, offset: offset, timestamp: at.microseconds / 1000)
  }

  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("id", name)
      json.member("at", at)
      json.member("topic", origin.topic)
      json.member("partition", Int(origin.partition))
      json.member("offset", origin.offset)
      json.member("code", code)
      json.member("reason", reason)
      json.member("taskId", orNull: taskID)
      json.member("text", String(decoding: value, as: UTF8.self))
      json.member("bytes", bytes)
      json.member("isCut", isCut)
    }
  }
}

extension DeadLetterSource {
  /// Up to `limit` letters about which nothing was done, from the newest on. Reads a bounded number of records: where most
  /// have a mark, it may return fewer, with a `next`.
  package func pending(
    before offsets: [Int32: Int64]?, limit: Int, in store: any DeadLetterStore
  ) async throws -> DeadLetterPage {
    var page = DeadLetterPage(letters: [], next: offsets)
    for look in 0..<10 where look == 0 || page.next != nil && page.letters.count < limit {
      let next = try await self.page(before: page.next, limit: limit - page.letters.count)
      let marks = try await store.marks(of: next.letters.map(\.mark))
      page.letters += next.letters.filter { marks[$0.mark] == nil }
      page.next = next.next
    }
    return page
  }

  /// The newest `limit` letters about which nothing was done, however many records have a mark, and whether there are more.
  package func newest(
    _ limit: Int, in store: any DeadLetterStore
  ) async throws -> (letters: [DeadLetter], hasMore: Bool) {
    // Reading few at a time takes long.
    let count = max(limit, 100)
    var page = try await pending(before: nil, limit: count, in: store)
    while page.letters.count < limit, let next = page.next {
      let older = try await pending(before: next, limit: count, in: store)
      page = DeadLetterPage(letters: page.letters + older.letters, next: older.next)
    }
    return (Array(page.letters.prefix(limit)), page.letters.count > limit || page.next != nil)
  }
}
