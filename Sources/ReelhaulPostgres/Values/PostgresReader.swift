/// Reads a value in PostgreSQL's binary format, and checks every length.
struct PostgresReader {
  private var rest: Slice<UnsafeRawBufferPointer>

  init(_ bytes: UnsafeRawBufferPointer) {
    rest = bytes[...]
  }

  mutating func integer<Number: FixedWidthInteger>(_: Number.Type = Number.self) throws(PostgresError) -> Number {
    let bytes = try take(MemoryLayout<Number>.size)
    return Number(bigEndian: bytes.loadUnaligned(as: Number.self))
  }

  mutating func take(_ count: Int) throws(PostgresError) -> UnsafeRawBufferPointer {
    guard count >= 0, count <= rest.count else {
      throw PostgresError(.protocol, "a value is shorter than its length says")
    }
    defer { rest = rest.dropFirst(count) }
    return UnsafeRawBufferPointer(rebasing: rest.prefix(count))
  }

  mutating func multirange() throws(PostgresError) -> [Range<Int64>] {
    var ranges: [Range<Int64>] = []
    for _ in 0..<(try count()) {
      var range = PostgresReader(try take(Int(try integer(Int32.self))))
      let flags = try range.integer(UInt8.self)
      if flags & PostgresMultirange.Flag.empty != 0 { continue }
      guard flags & PostgresMultirange.Flag.infinite == 0 else {
        throw PostgresError(.protocol, "a range without an end")
      }
      let lower = try range.bound(isInside: flags & PostgresMultirange.Flag.lowerInclusive != 0, belongs: 0)
      let upper = try range.bound(isInside: flags & PostgresMultirange.Flag.upperInclusive == 0, belongs: 1)
      guard lower <= upper else { throw PostgresError(.protocol, "a range ends before it begins") }
      ranges.append(lower..<upper)
    }
    return ranges
  }

  /// One bound, converted to a half-open range. PostgreSQL canonicalises `int8range` to `[)`; other forms are moved by
  /// one.
  private mutating func bound(isInside canonical: Bool, belongs: Int) throws(PostgresError) -> Int64 {
    guard try integer(Int32.self) == 8 else { throw PostgresError(.protocol, "a range of another type than int8") }
    let value = try integer(Int64.self)
    return canonical ? value : value &+ 1
  }

  /// A number of elements; never negative.
  mutating func count() throws(PostgresError) -> Int {
    let count = try integer(Int32.self)
    guard count >= 0 else { throw PostgresError(.protocol, "a negative count") }
    return Int(count)
  }
}
