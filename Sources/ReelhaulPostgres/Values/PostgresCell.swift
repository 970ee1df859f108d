/// One value of a result that is not NULL. Throws ``PostgresError`` if the value has another type than the caller asks
/// for.
package struct PostgresCell {
  package let type: PostgresType
  private let start: UnsafeRawPointer
  private let count: Int
  /// Keeps the memory of the bytes alive.
  private let owner: PostgresRows.Storage
  private let column: Int32

  init(type: PostgresType, bytes: UnsafeRawBufferPointer, owner: PostgresRows.Storage, column: Int32) {
    self.type = type
    self.column = column
    start = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped
    count = bytes.count
    self.owner = owner
  }

  /// Lends the value's bytes in PostgreSQL's binary format.
  package func withBytes<Result>(
    _ body: (UnsafeRawBufferPointer) throws(PostgresError) -> Result
  ) throws(PostgresError) -> Result {
    defer { withExtendedLifetime(owner) {} }
    return try body(UnsafeRawBufferPointer(start: start, count: count))
  }

  package func bool() throws(PostgresError) -> Bool {
    guard type == .bool else { throw mismatch("bool") }
    return try fixed(UInt8.self) != 0
  }

  /// `int2`, `int4`, `int8` or `oid`.
  package func int64() throws(PostgresError) -> Int64 {
    switch type {
    case .int64: try fixed(Int64.self)
    case .int32: Int64(try fixed(Int32.self))
    case .int16: Int64(try fixed(Int16.self))
    case .oid: Int64(try fixed(UInt32.self))
    default: throw mismatch("an integer")
    }
  }

  /// `int2`, `int4`, or an `int8` that fits.
  package func int32() throws(PostgresError) -> Int32 {
    guard let value = Int32(exactly: try int64()) else { throw mismatch("a 32-bit integer") }
    return value
  }

  package func int16() throws(PostgresError) -> Int16 {
    guard let value = Int16(exactly: try int64()) else { throw mismatch("a 16-bit integer") }
    return value
  }

  package func double() throws(PostgresError) -> Double {
    switch type {
    case .double: Double(bitPattern: try fixed(UInt64.self))
    case .float: Double(Float(bitPattern: try fixed(UInt32.self)))
    default: throw mismatch("a floating-point number")
    }
  }

  /// The text of any type whose binary format is its text, including `json` and `jsonb`.
  package func text() throws(PostgresError) -> String {
    guard !Self.isNotText(type), let text = String(validating: try bytes(), as: UTF8.self) else {
      throw mismatch("text")
    }
    return text
  }

  /// The raw bytes; for `jsonb`, the bytes of its document.
  package func bytes() throws(PostgresError) -> [UInt8] {
    try withBytes { bytes in Array(type == .jsonb ? bytes.dropFirst() : bytes[...]) }
  }

  package func uuid() throws(PostgresError) -> (high: UInt64, low: UInt64) {
    guard type == .uuid else { throw mismatch("uuid") }
    return try withBytes { bytes throws(PostgresError) in
      var reader = PostgresReader(bytes)
      return (try reader.integer(UInt64.self), try reader.integer(UInt64.self))
    }
  }

  /// Microseconds since 1970. `Int64.max` and `.min` stand for infinite values, and for values out of range.
  package func timestamp() throws(PostgresError) -> Int64 {
    guard type == .timestamptz else { throw mismatch("timestamptz") }
    let value = try fixed(Int64.self)
    if value == .min { return value }
    let (sum, overflows) = value.addingReportingOverflow(PostgresTimestamp.epoch)
    return overflows ? .max : sum
  }

  /// The elements of a one-dimensional array; nil for NULL.
  package func array() throws(PostgresError) -> [PostgresCell?] {
    try withBytes { bytes throws(PostgresError) in
      var reader = PostgresReader(bytes)
      let dimensions = try reader.integer(Int32.self)
      _ = try reader.integer(Int32.self)
      let type = PostgresType(oid: try reader.integer(UInt32.self))
      if dimensions == 0 { return [] }
      guard dimensions == 1 else { throw mismatch("an array of one dimension") }
      let count = try reader.count()
      _ = try reader.integer(Int32.self)
      var cells: [PostgresCell?] = []
      for _ in 0..<count {
        let size = try reader.integer(Int32.self)
        cells.append(
          size < 0 ? nil : PostgresCell(type: type, bytes: try reader.take(Int(size)), owner: owner, column: column))
      }
      return cells
    }
  }

  /// The elements of an array without NULLs.
  package func array<Element>(
    _ element: (PostgresCell) throws(PostgresError) -> Element
  ) throws(PostgresError) -> [Element] {
    var elements: [Element] = []
    for cell in try array() {
      guard let cell else { throw PostgresError(.protocol, "NULL in an array: \(place)") }
      elements.append(try element(cell))
    }
    return elements
  }

  private func fixed<Number: FixedWidthInteger>(_: Number.Type) throws(PostgresError) -> Number {
    try withBytes { bytes throws(PostgresError) in
      guard bytes.count == MemoryLayout<Number>.size else { throw mismatch("\(MemoryLayout<Number>.size) bytes") }
      return Number(bigEndian: bytes.loadUnaligned(as: Number.self))
    }
  }

  private static func isNotText(_ type: PostgresType) -> Bool {
    switch type {
    case .bool, .bytea, .int16, .int32, .int64, .float, .double, .uuid, .timestamptz: true
    default: false
    }
  }

  /// The column and the statement, for errors.
  package var place: String { owner.placeText(column) }

  private func mismatch(_ wanted: String) -> PostgresError {
    PostgresError(.protocol, "\(place): expected \(wanted), found type \(type.oid) of \(count) bytes")
  }
}
