import Testing

@testable import ReelhaulCodec

struct JSONWriterTests {
  @Test("the writer adds commas and escapes, and omits members that are nil")
  func writesCommasAndEscapes() {
    let bytes = JSONWriter.write { json in
      json.object { json in
        json.member("a", "\"\\\n\r\t\u{8}\u{C}\u{1}é😀")
        json.member("absent", nil as String?)
        json.member("n", orNull: nil as Int64?)
        json.name("list")
        json.array { json in
          json.integer(Int64.min)
          json.integer(Int64.max)
          json.integer(0)
          json.ascii(8) { buffer in
            buffer[0] = UInt8(ascii: "x")
            return 1
          }
          json.bool(false)
          json.double(0.5)
          json.double(.infinity)
          json.object { _ in }
        }
        json.member("labels", ["b": "2", "a": "1"])
      }
    }
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"a":"\"\\\n\r\t\b\f\u0001é😀","n":null,"list":[-9223372036854775808,9223372036854775807,0,"x","#
        + #"false,0.5,null,{}],"labels":{"a":"1","b":"2"}}"#)
  }

  @Test("every string is read back as it was written")
  func everyStringComesBack() throws {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<2000 {
      let scalars = (0..<Int.random(in: 0..<20, using: &generator)).compactMap { _ in
        Unicode.Scalar(UInt32.random(in: 0..<([0x80, 0x800, 0x11_0000].randomElement() ?? 1)))
      }
      let text = String(String.UnicodeScalarView(scalars))
      let bytes = JSONWriter.write { $0.string(text) }
      let back = try JSONReader.read(bytes) { reader throws(DecodingFailure) in try reader.string() }
      #expect(Array(back.unicodeScalars) == scalars)
    }
  }
}
