import ReelhaulCodec

/// How far a client has come in the topic `events`: the `id` of an event, opaque to clients. It says the same to every
/// server of the fleet.
struct EventCursor: Hashable, Sendable {
  /// A record that the client has seen. If another one stands in its place, the topic was made anew, and the positions
  /// mean nothing.
  struct Witness: Hashable, Sendable {
    /// Its offset is the one before the partition's position.
    var partition: Int
    /// Milliseconds since 1970.
    var timestamp: Int64
  }

  /// The next offset of each partition. A partition that is not there yet begins at 0.
  var positions: [Int64]
  var witness: Witness?

  private static let version: UInt8 = 1
  private static let mostPartitions = 10_000

  subscript(partition: Int) -> Int64 {
    get { partition < positions.count ? positions[partition] : 0 }
    set {
      while positions.count <= partition { positions.append(0) }
      positions[partition] = newValue
    }
  }

  /// Goes behind a record. False if the client has seen it already.
  mutating func pass(_ entry: EventEntry) -> Bool {
    guard entry.offset >= self[entry.partition] else { return false }
    self[entry.partition] = entry.offset + 1
    witness = Witness(partition: entry.partition, timestamp: entry.timestamp)
    return true
  }

  var text: String {
    var bytes = [Self.version]
    bytes.reserveCapacity(8 + 4 * positions.count)
    Self.write(UInt64(positions.count), to: &bytes)
    for position in positions { Self.write(UInt64(clamping: position), to: &bytes) }
    if let witness {
      Self.write(UInt64(witness.partition), to: &bytes)
      Self.write(UInt64(clamping: witness.timestamp), to: &bytes)
    }
    return Base64URL.encode(bytes)
  }

  init(positions: [Int64], witness: Witness? = nil) {
    (self.positions, self.witness) = (positions, witness)
  }

  /// Nil if it is not a text that ``text`` makes.
  init?(_ text: some StringProtocol) {
    guard text.utf8.count <= 256 << 10, let bytes = Base64URL.decode(text), bytes.first == Self.version else {
      return nil
    }
    var rest = bytes.dropFirst()
    guard let count = Self.read(&rest), count <= Self.mostPartitions else { return nil }
    positions = []
    for _ in 0..<count {
      guard let position = Self.read(&rest) else { return nil }
      positions.append(position)
    }
    guard !rest.isEmpty else { return }
    guard let partition = Self.read(&rest), partition < count, positions[Int(partition)] > 0,
      let timestamp = Self.read(&rest), rest.isEmpty
    else { return nil }
    witness = Witness(partition: Int(partition), timestamp: timestamp)
  }

  /// Seven bits a byte, the lowest first; all but the last byte have the highest bit.
  private static func write(_ value: UInt64, to bytes: inout [UInt8]) {
    var value = value
    while value > 0x7F {
      bytes.append(UInt8(value & 0x7F) | 0x80)
      value >>= 7
    }
    bytes.append(UInt8(value))
  }

  private static func read(_ bytes: inout ArraySlice<UInt8>) -> Int64? {
    var value: Int64 = 0
    for shift in stride(from: Int64(0), to: 63, by: 7) {
      guard let byte = bytes.popFirst() else { return nil }
      value |= Int64(byte & 0x7F) << shift
      if byte & 0x80 == 0 { return value }
    }
    return nil
  }
}
