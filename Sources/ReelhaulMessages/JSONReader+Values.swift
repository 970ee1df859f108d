import ReelhaulCodec
import TaskCore

extension JSONReader {
  package mutating func uuid() throws(DecodingFailure) -> UniqueID {
    guard let id = try text(body: { UniqueID(utf8: $0[...]) }) else {
      throw invalid("expected a UUID, such as 019adf3e-5a00-7cc1-9d3e-6d2f0a7e4b11")
    }
    return id
  }

  /// An RFC 3339 time.
  package mutating func timestamp() throws(DecodingFailure) -> Timestamp {
    let text = try string(limit: 64)
    do throws(InvalidTimestamp) {
      return try Timestamp(rfc3339: text)
    } catch {
      throw invalid(error.description)
    }
  }

  /// A digest of `count` bytes in hexadecimal digits.
  package mutating func digest(count: Int) throws(DecodingFailure) -> [UInt8] {
    guard let digest = try text(body: Hex.decode), digest.count == count else {
      throw invalid("expected \(2 * count) hexadecimal digits")
    }
    return digest
  }

  package mutating func choice<Choice>(
    _ type: Choice.Type = Choice.self
  ) throws(DecodingFailure) -> Choice where Choice: RawRepresentable<String> & CaseIterable {
    guard let choice = Choice(rawValue: try string(limit: 64)) else {
      throw invalid("expected one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return choice
  }

  package mutating func uuids() throws(DecodingFailure) -> [UniqueID] {
    var ids: [UniqueID] = []
    try array { reader, _ throws(DecodingFailure) in ids.append(try reader.uuid()) }
    return ids
  }

  /// An object whose values are strings. Refuses two names that are equal in Unicode but have different bytes.
  package mutating func strings() throws(DecodingFailure) -> [String: String] {
    var values: [String: String] = [:]
    try object { reader, name throws(DecodingFailure) in
      let value = try reader.string()
      guard values.updateValue(value, forKey: name.text) == nil else {
        throw reader.invalid("the same name in two spellings")
      }
    }
    return values
  }

  private mutating func text<Value>(body: (UnsafeBufferPointer<UInt8>) -> Value) throws(DecodingFailure) -> Value {
    try text(limit: 256, body)
  }
}
