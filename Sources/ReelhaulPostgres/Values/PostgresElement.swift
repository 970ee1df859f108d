/// A Swift type that can be a parameter, alone or as the elements of an array for `unnest`.
package protocol PostgresElement {
  static var postgresType: PostgresType { get }
  static var postgresArrayType: PostgresType { get }
  func write(to buffer: inout PostgresBuffer)
}

extension Bool: PostgresElement {
  package static var postgresType: PostgresType { .bool }
  package static var postgresArrayType: PostgresType { .boolArray }
  package func write(to buffer: inout PostgresBuffer) { buffer.append(UInt8(self ? 1 : 0)) }
}

extension Int16: PostgresElement {
  package static var postgresType: PostgresType { .int16 }
  package static var postgresArrayType: PostgresType { .int16Array }
  package func write(to buffer: inout PostgresBuffer) { buffer.append(self) }
}

extension Int32: PostgresElement {
  package static var postgresType: PostgresType { .int32 }
  package static var postgresArrayType: PostgresType { .int32Array }
  package func write(to buffer: inout PostgresBuffer) { buffer.append(self) }
}

extension Int64: PostgresElement {
  package static var postgresType: PostgresType { .int64 }
  package static var postgresArrayType: PostgresType { .int64Array }
  package func write(to buffer: inout PostgresBuffer) { buffer.append(self) }
}

extension Double: PostgresElement {
  package static var postgresType: PostgresType { .double }
  package static var postgresArrayType: PostgresType { .doubleArray }
  package func write(to buffer: inout PostgresBuffer) { buffer.append(bitPattern) }
}

extension String: PostgresElement {
  package static var postgresType: PostgresType { .text }
  package static var postgresArrayType: PostgresType { .textArray }
  package func write(to buffer: inout PostgresBuffer) { buffer.append(utf8) }
}

/// Arrays of bytes are `bytea`.
extension [UInt8]: PostgresElement {
  package static var postgresType: PostgresType { .bytea }
  package static var postgresArrayType: PostgresType { .byteaArray }
  package func write(to buffer: inout PostgresBuffer) { buffer.append(self) }
}

/// `uuid`, as its first and its last eight bytes.
package struct PostgresUUID: PostgresElement, Hashable, Sendable {
  package var high: UInt64
  package var low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  package static var postgresType: PostgresType { .uuid }
  package static var postgresArrayType: PostgresType { .uuidArray }

  package func write(to buffer: inout PostgresBuffer) {
    buffer.append(high)
    buffer.append(low)
  }
}

/// `timestamptz`.
package struct PostgresTimestamp: PostgresElement, Hashable, Sendable {
  /// Microseconds since 1970-01-01T00:00:00Z; `Int64.max` and `.min` are PostgreSQL's `infinity` and `-infinity`.
  package var microseconds: Int64

  package init(microseconds: Int64) {
    self.microseconds = microseconds
  }

  /// Microseconds from 1970 to PostgreSQL's epoch, 2000-01-01T00:00:00Z.
  static let epoch: Int64 = 946_684_800_000_000

  package static var postgresType: PostgresType { .timestamptz }
  package static var postgresArrayType: PostgresType { .timestamptzArray }

  package func write(to buffer: inout PostgresBuffer) {
    let isInfinite = microseconds == .max || microseconds == .min
    let (time, isTooEarly) = microseconds.subtractingReportingOverflow(Self.epoch)
    buffer.append(isInfinite ? microseconds : isTooEarly ? .min : time)
  }
}

/// `json`, from a document in UTF-8.
package struct PostgresJSON: PostgresElement, Hashable, Sendable {
  package var utf8: [UInt8]

  package init(utf8: [UInt8]) {
    self.utf8 = utf8
  }

  package static var postgresType: PostgresType { .json }
  package static var postgresArrayType: PostgresType { .jsonArray }

  package func write(to buffer: inout PostgresBuffer) {
    buffer.append(utf8)
  }
}
