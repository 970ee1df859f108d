/// Bytes of a value in PostgreSQL's binary format: big-endian, lengths before contents.
package struct PostgresBuffer {
  package private(set) var bytes: [UInt8] = []

  package mutating func append(_ value: some FixedWidthInteger) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  package mutating func append(_ contents: some Collection<UInt8>) {
    bytes.append(contentsOf: contents)
  }

  /// Appends the bytes that `body` writes, after their length.
  package mutating func appendSized(_ body: (inout PostgresBuffer) -> Void) {
    let start = bytes.count
    append(Int32(0))
    body(&self)
    let size = Int32(bytes.count - start - 4)
    withUnsafeBytes(of: size.bigEndian) { source in
      for offset in 0..<4 { bytes[start + offset] = source[offset] }
    }
  }

  package mutating func reserve(_ count: Int) {
    bytes.reserveCapacity(count)
  }
}
