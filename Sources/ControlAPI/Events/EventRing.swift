/// The newest events of the fleet, which all clients share. It is bounded by its bytes and by its number of events.
///
/// Items are numbered by their arrival. Within a partition they are in order.
struct EventRing: Sendable {
  enum Item: Sendable {
    /// An event, and the text of the cursor behind it, for those who have everything before.
    case event(EventEntry, cursor: [UInt8])
    /// Records of a partition are gone that were not read. The next one is at `found`.
    case gap(partition: Int, found: Int64)
  }

  private let limit: (bytes: Int, items: Int)
  /// Those before `head` are dropped.
  private var items: [Item?] = []
  private var head = 0
  private var bytes = 0
  /// The number of the first item that is still there.
  private(set) var first: Int
  /// The number of the first item that there was. Smaller numbers are of a topic that was made anew since.
  let origin: Int
  /// By partition: everything from here on was received, and all of it that is an event is here.
  private(set) var starts: [Int64]
  /// By partition: the offset after the last record that was received.
  private(set) var ends: [Int64]

  /// What an item costs besides its JSON.
  private static let overhead = 200

  init(bytes: Int, items: Int, beginnings: [Int64], origin: Int = 0) {
    limit = (bytes, items)
    self.origin = origin
    first = origin
    (starts, ends) = (beginnings, beginnings)
  }

  /// The number of the next item.
  var end: Int { first + items.count - head }

  /// Whether this place was read before: then the topic was made anew, and nothing here is of the present one.
  func hasPassed(partition: Int, offset: Int64) -> Bool { partition < ends.count && offset < ends[partition] }

  mutating func append(_ entry: EventEntry) {
    pass(partition: entry.partition, offset: entry.offset)
    let witness = EventCursor.Witness(partition: entry.partition, timestamp: entry.timestamp)
    let cursor = Array(EventCursor(positions: ends, witness: witness).text.utf8)
    append(.event(entry, cursor: cursor), bytes: entry.json.count + cursor.count)
  }

  /// A record that is not an event.
  mutating func pass(partition: Int, offset: Int64) {
    widen(to: partition + 1)
    ends[partition] = offset + 1
  }

  /// Knows of so many partitions. One that appears later is received from its beginning.
  mutating func widen(to partitions: Int) {
    while ends.count < partitions {
      starts.append(0)
      ends.append(0)
    }
  }

  mutating func appendGap(partition: Int, found: Int64) {
    pass(partition: partition, offset: found - 1)
    append(.gap(partition: partition, found: found), bytes: 0)
  }

  subscript(number: Int) -> Item? {
    number >= first && number < end ? items[head + number - first] : nil
  }

  /// Whether every event after the cursor is here, or still to come, and the cursor belongs to this topic.
  func covers(_ cursor: EventCursor) -> Bool {
    guard cursor.positions.count <= ends.count else { return false }
    for (partition, start) in starts.enumerated() where cursor[partition] < start { return false }
    guard let witness = cursor.witness else {
      return !ends.indices.contains { cursor[$0] > ends[$0] }
    }
    // Most clients come back soon.
    for item in items[head...].reversed() {
      if case .event(let entry, _) = item, entry.partition == witness.partition,
        entry.offset == cursor[witness.partition] - 1
      {
        return entry.timestamp == witness.timestamp
      }
    }
    return false
  }

  /// Whether a client that has come so far has everything that was received.
  func isCurrent(_ place: EventFeed.Place) -> Bool {
    place.number == end && place.cursor.positions.count <= ends.count
      && !ends.indices.contains { place.cursor[$0] > ends[$0] }
  }

  private mutating func append(_ item: Item, bytes more: Int) {
    items.append(item)
    bytes += more + Self.overhead
    while items.count - head > 1, bytes > limit.bytes || items.count - head > limit.items { drop() }
  }

  private mutating func drop() {
    switch items[head] {
    case .event(let entry, let cursor):
      bytes -= entry.json.count + cursor.count
      starts[entry.partition] = entry.offset + 1
    case .gap(let partition, let found): starts[partition] = max(starts[partition], found)
    case nil: break
    }
    bytes -= Self.overhead
    items[head] = nil
    (head, first) = (head + 1, first + 1)
    if head > 1024, head * 2 > items.count {
      items.removeFirst(head)
      head = 0
    }
  }
}
