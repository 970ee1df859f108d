import FoundationEssentials
import Testing

@testable import ReelhaulCodec

/// Any JSON value, for comparing two readers.
private indirect enum Value: Equatable, Decodable {
  case null
  case bool(Bool)
  case integer(Int64)
  case string(String)
  case array([Value])
  case object([String: Value])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let bool = try? container.decode(Bool.self) {
      self = .bool(bool)
    } else if let integer = try? container.decode(Int64.self) {
      self = .integer(integer)
    } else if let string = try? container.decode(String.self) {
      self = .string(string)
    } else if let array = try? container.decode([Value].self) {
      self = .array(array)
    } else {
      self = .object(try container.decode([String: Value].self))
    }
  }

  init(from reader: inout JSONReader) throws(DecodingFailure) {
    switch try reader.peek() {
    case UInt8(ascii: "{"):
      var members: [String: Value] = [:]
      try reader.object { reader, name throws(DecodingFailure) in members[name.text] = try Value(from: &reader) }
      self = .object(members)
    case UInt8(ascii: "["):
      var elements: [Value] = []
      try reader.array { reader, _ throws(DecodingFailure) in elements.append(try Value(from: &reader)) }
      self = .array(elements)
    case UInt8(ascii: "\""): self = .string(try reader.string())
    case UInt8(ascii: "t"), UInt8(ascii: "f"): self = .bool(try reader.bool())
    case UInt8(ascii: "n"):
      _ = try reader.null()
      self = .null
    default: self = .integer(try reader.integer())
    }
  }

  static func random(depth: Int, using generator: inout some RandomNumberGenerator) -> Value {
    switch Int.random(in: 0..<(depth > 0 ? 6 : 4), using: &generator) {
    case 0: .bool(.random(using: &generator))
    case 1: .integer(.random(in: .min ... .max, using: &generator))
    case 2: .integer(.random(in: -9...9, using: &generator))
    case 3: .string(text(using: &generator))
    case 4:
      .array((0..<Int.random(in: 0..<4, using: &generator)).map { _ in random(depth: depth - 1, using: &generator) })
    default:
      .object(
        Dictionary(
          (0..<Int.random(in: 0..<4, using: &generator)).map { _ in
            (text(using: &generator), random(depth: depth - 1, using: &generator))
          }, uniquingKeysWith: { first, _ in first }))
    }
  }

  private static func text(using generator: inout some RandomNumberGenerator) -> String {
    let alphabet = Array("ab\"\\/\n\t\u{1}\u{7f}é€😀{}[]:,")
    return String(
      (0..<Int.random(in: 0..<8, using: &generator)).compactMap { _ in
        alphabet.randomElement(using: &generator)
      })
  }

  func write(to json: inout JSONWriter) {
    switch self {
    case .null: json.null()
    case .bool(let value): json.bool(value)
    case .integer(let value): json.integer(value)
    case .string(let value): json.string(value)
    case .array(let values):
      json.array { json in
        for value in values { value.write(to: &json) }
      }
    case .object(let members):
      json.object { json in
        for (name, value) in members {
          json.name(name)
          value.write(to: &json)
        }
      }
    }
  }
}

struct JSONFuzzTests {
  @Test("random values that are written are read back equal, here and by Foundation", arguments: 0..<20)
  func foundationReadsWhatIsWrittenAndSoDoWe(round: Int) throws {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<50 {
      let value = Value.array([.random(depth: 5, using: &generator)])
      let bytes = JSONWriter.write { value.write(to: &$0) }
      let own = try JSONReader.read(bytes) { reader throws(DecodingFailure) in try Value(from: &reader) }
      #expect(own == value)
      #expect(try JSONDecoder().decode(Value.self, from: Data(bytes)) == value)
    }
  }

  @Test(
    "mutated documents never crash the reader, and Foundation reads accepted ones as the same value", arguments: 0..<20)
  func acceptsNothingThatFoundationRefuses(round: Int) {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<100 {
      var bytes = JSONWriter.write { Value.array([.random(depth: 3, using: &generator)]).write(to: &$0) }
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        let byte = Array(#"{}[]",:\u0123456789eE+-.truefalsn "#.utf8).randomElement(using: &generator) ?? 0
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: bytes[index] = byte
        case 1: bytes.insert(byte, at: index)
        case 2: bytes[index] = .random(in: 0...255, using: &generator)
        default: if bytes.count > 1 { bytes.remove(at: index) }
        }
      }
      guard
        let own = try? JSONReader.read(
          bytes,
          { reader throws(DecodingFailure) in
            try Value(from: &reader)
          })
      else { continue }
      let text = String(decoding: bytes, as: UTF8.self)
      // Members that are null count as absent here.
      guard !text.contains("null") else { continue }
      let other = try? JSONDecoder().decode(Value.self, from: Data(bytes))
      #expect(own == other, "\(text)")
    }
  }
}
