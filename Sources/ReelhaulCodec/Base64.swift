/// Base64 with padding (RFC 4648, 4).
package enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    let bytes = Array(bytes)
    var output: [UInt8] = []
    output.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = (0..<3).reduce(0) { $0 << 8 | (start + $1 < bytes.count ? Int(bytes[start + $1]) : 0) }
      let used = min(3, bytes.count - start) + 1
      for digit in 0..<4 { output.append(digit < used ? alphabet[group >> (18 - 6 * digit) & 63] : UInt8(ascii: "=")) }
    }
    return String(decoding: output, as: UTF8.self)
  }
}
