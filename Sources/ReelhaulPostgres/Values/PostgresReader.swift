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

  /// A number of elements; never negative.
  mutating func count() throws(PostgresError) -> Int {
    let count = try integer(Int32.self)
    guard count >= 0 else { throw PostgresError(.protocol, "a negative count") }
    return Int(count)
  }
}
