/// An encoded parameter of a statement: its type and its bytes, or NULL.
package struct PostgresValue: Hashable, Sendable {
  package let type: PostgresType
  /// The value in PostgreSQL's binary format; nil for NULL.
  package let bytes: [UInt8]?

  private init(type: PostgresType, bytes: [UInt8]?) {
    self.type = type
    self.bytes = bytes
  }

  /// One value.
  package init<Element: PostgresElement>(_ element: Element?) {
    type = Element.postgresType
    bytes = element.map { element in
      var buffer = PostgresBuffer()
      element.write(to: &buffer)
      return buffer.bytes
    }
  }

  /// A NULL of this type.
  package static func null(_ type: PostgresType) -> PostgresValue {
    PostgresValue(type: type, bytes: nil)
  }

  /// A one-dimensional array, for `unnest`.
  package static func array<Element: PostgresElement>(_ elements: some Collection<Element>) -> PostgresValue {
    array(of: Element.self, count: elements.count, hasNull: false) { buffer in
      for element in elements { buffer.appendSized { element.write(to: &$0) } }
    }
  }

  /// A one-dimensional array; nil elements are NULL.
  package static func array<Element: PostgresElement>(_ elements: some Collection<Element?>) -> PostgresValue {
    array(of: Element.self, count: elements.count, hasNull: elements.contains { $0 == nil }) { buffer in
      for element in elements {
        if let element {
          buffer.appendSized { element.write(to: &$0) }
        } else {
          buffer.append(Int32(-1))
        }
      }
    }
  }

  private static func array<Element: PostgresElement>(
    of element: Element.Type, count: Int, hasNull: Bool, _ contents: (inout PostgresBuffer) -> Void
  ) -> PostgresValue {
    var buffer = PostgresBuffer()
    buffer.reserve(20 + count * 12)
    buffer.append(Int32(count == 0 ? 0 : 1))  // dimensions
    buffer.append(Int32(hasNull ? 1 : 0))
    buffer.append(element.postgresType.oid)
    if count > 0 {
      buffer.append(Int32(count))
      buffer.append(Int32(1))  // the lower bound
      contents(&buffer)
    }
    return PostgresValue(type: element.postgresArrayType, bytes: buffer.bytes)
  }
}

// Values by the name of their type; nil for NULL.
extension PostgresValue {
  package static func bool(_ value: Bool?) -> PostgresValue { PostgresValue(value) }
  package static func int16(_ value: Int16?) -> PostgresValue { PostgresValue(value) }
  package static func int32(_ value: Int32?) -> PostgresValue { PostgresValue(value) }
  package static func int64(_ value: Int64?) -> PostgresValue { PostgresValue(value) }
  package static func double(_ value: Double?) -> PostgresValue { PostgresValue(value) }
  package static func text(_ value: String?) -> PostgresValue { PostgresValue(value) }
  package static func bytea(_ value: [UInt8]?) -> PostgresValue { PostgresValue(value) }
  package static func uuid(_ high: UInt64, _ low: UInt64) -> PostgresValue {
    PostgresValue(PostgresUUID(high: high, low: low))
  }
  /// Microseconds since 1970.
  package static func timestamptz(_ microseconds: Int64?) -> PostgresValue {
    PostgresValue(microseconds.map(PostgresTimestamp.init))
  }
  /// `json`, from UTF-8.
  package static func json(_ utf8: [UInt8]?) -> PostgresValue { PostgresValue(utf8.map(PostgresJSON.init)) }
}

// Arrays by the name of their type.
extension PostgresValue {
  package static func boolArray(_ values: some Collection<Bool>) -> PostgresValue { array(values) }
  package static func boolArray(_ values: some Collection<Bool?>) -> PostgresValue { array(values) }
  package static func int16Array(_ values: some Collection<Int16>) -> PostgresValue { array(values) }
  package static func int16Array(_ values: some Collection<Int16?>) -> PostgresValue { array(values) }
  package static func int32Array(_ values: some Collection<Int32>) -> PostgresValue { array(values) }
  package static func int32Array(_ values: some Collection<Int32?>) -> PostgresValue { array(values) }
  package static func int64Array(_ values: some Collection<Int64>) -> PostgresValue { array(values) }
  package static func int64Array(_ values: some Collection<Int64?>) -> PostgresValue { array(values) }
  package static func textArray(_ values: some Collection<String>) -> PostgresValue { array(values) }
  package static func textArray(_ values: some Collection<String?>) -> PostgresValue { array(values) }
  package static func byteaArray(_ values: some Collection<[UInt8]>) -> PostgresValue { array(values) }
  package static func byteaArray(_ values: some Collection<[UInt8]?>) -> PostgresValue { array(values) }
  package static func uuidArray(_ values: some Collection<PostgresUUID>) -> PostgresValue { array(values) }
  package static func uuidArray(_ values: some Collection<PostgresUUID?>) -> PostgresValue { array(values) }
  package static func timestamptzArray(_ microseconds: some Collection<Int64>) -> PostgresValue {
    array(microseconds.map(PostgresTimestamp.init))
  }
  package static func timestamptzArray(_ microseconds: some Collection<Int64?>) -> PostgresValue {
    array(microseconds.map { $0.map(PostgresTimestamp.init) })
  }
  package static func jsonArray(_ utf8: some Collection<[UInt8]>) -> PostgresValue {
    array(utf8.map(PostgresJSON.init))
  }
  package static func jsonArray(_ utf8: some Collection<[UInt8]?>) -> PostgresValue {
    array(utf8.map { $0.map(PostgresJSON.init) })
  }
}
