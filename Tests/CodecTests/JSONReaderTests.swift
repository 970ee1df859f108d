import Testing

@testable import ReelhaulCodec

private func read<Value>(
  _ text: String, _ body: (inout JSONReader) throws(DecodingFailure) -> Value
) throws(DecodingFailure) -> Value {
  try JSONReader.read(Array(text.utf8), body)
}

private func problem(
  _ text: [UInt8], _ body: (inout JSONReader) throws(DecodingFailure) -> Void
) -> DecodingFailure? {
  do throws(DecodingFailure) {
    try JSONReader.read(text, body)
    return nil
  } catch {
    return error
  }
}

private func problem(_ text: String) -> DecodingFailure? {
  problem(Array(text.utf8)) { reader throws(DecodingFailure) in try reader.skip() }
}

struct JSONReaderTests {
  @Test("members are read in any order, and the others are skipped")
  func readsMembersInAnyOrderAndSkipsTheRest() throws {
    var id = ""
    var count = 0
    var flag = false
    try read(#" { "x": [1, {"y": null}], "n": -12 , "id":"a\"b\\c\/\u00e9\ud83d\ude00\n", "flag": true } "#) {
      reader throws(DecodingFailure) in
      try reader.object { reader, name throws(DecodingFailure) in
        switch name {
        case "id": id = try reader.string()
        case "n": count = try reader.integer()
        case "flag": flag = try reader.bool()
        default: try reader.skip()
        }
      }
    }
    #expect(id == "a\"b\\c/é😀\n")
    #expect(count == -12)
    #expect(flag)
  }

  @Test("members that are null count as absent")
  func nullMembersCountAsAbsent() throws {
    var names: [String] = []
    try read(#"{"a":null,"b":1,"c":null}"#) { reader throws(DecodingFailure) in
      try reader.object { reader, name throws(DecodingFailure) in
        names.append(name.text)
        try reader.skip()
      }
    }
    #expect(names == ["b"])
  }

  @Test("a name that appears twice is refused, even if one is written with escapes")
  func aNameMayAppearOnceHoweverItIsWritten() {
    let failure = problem(Array(#"{"id":1,"\u0069d":2}"#.utf8)) { reader throws(DecodingFailure) in
      try reader.object { reader, _ throws(DecodingFailure) in try reader.skip() }
    }
    #expect(failure == DecodingFailure(.duplicateName("id"), offset: 8))
  }

  @Test("the same name may appear in different objects")
  func namesOfDifferentObjectsDoNotMeet() {
    let failure = problem(Array(#"{"a":{"a":1},"b":{"a":1}}"#.utf8)) { reader throws(DecodingFailure) in
      try reader.object { reader, _ throws(DecodingFailure) in
        try reader.object { reader, _ throws(DecodingFailure) in try reader.skip() }
      }
    }
    #expect(failure == nil)
  }

  @Test(
    "a failure names the problem and the byte",
    arguments: [
      ("", .emptyInput, 0), ("  ", .emptyInput, 2), ("{", .unexpectedEnd, 1), ("[1,", .unexpectedEnd, 3),
      ("1 2", .trailingBytes, 2), ("{} x", .trailingBytes, 3), (#"{"a" 1}"#, .expected("a colon"), 5),
      ("[1 2]", .expected("a comma or ]"), 3), ("[1,]", .expected("a value of another kind"), 3),
      ("{1:2}", .expected("a name in quotes"), 1), ("\"a", .unexpectedEnd, 2),
      ("\"a\u{1}\"", .unescapedControlCharacter, 2),
      (#""\x""#, .invalidEscape, 1), (#""\u12g4""#, .invalidEscape, 1), (#""\ud800""#, .loneSurrogate, 1),
      (#""\ud800\u0041""#, .loneSurrogate, 1), (#""\udc00""#, .loneSurrogate, 1), ("01", .invalidNumber, 1),
      ("1.", .unexpectedEnd, 2), ("-", .unexpectedEnd, 1), ("1e+x", .invalidNumber, 3),
      ("nul", .expected("a value"), 0),
      ("tru", .expected("true or false"), 0), ("'a'", .expected("a value of another kind"), 0),
    ] as [(String, DecodingFailure.Problem, Int)])
  func namesTheProblemAndTheByte(text: String, expected: DecodingFailure.Problem, offset: Int) {
    #expect(problem(text) == DecodingFailure(expected, offset: offset))
  }

  @Test("the depth of nesting is limited")
  func depthIsLimited() {
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    #expect(problem(nested(32)) == nil)
    #expect(problem(nested(33)) == DecodingFailure(.tooDeep(limit: 32), offset: 32))
    #expect(problem(String(repeating: "[", count: 1_000_000))?.problem == .tooDeep(limit: 32))
    // What is taken as one value is passed over within another document.
    func problemInside(_ depth: Int) -> DecodingFailure? {
      problem(Array(#"{"task":{"parameters":\#(nested(depth)),"a":1}}"#.utf8)) { reader throws(DecodingFailure) in
        try reader.object { reader, _ throws(DecodingFailure) in
          try reader.object { reader, _ throws(DecodingFailure) in try reader.skip() }
        }
      }
    }
    #expect(problemInside(32) == nil)
    #expect(problemInside(33)?.problem == .tooDeep(limit: 32))
  }

  @Test("the lengths of the input and of strings are limited")
  func lengthsAreLimited() throws {
    #expect(throws: DecodingFailure(.inputTooLong(limit: 3), offset: 3)) {
      try JSONReader.read(Array("[[]]".utf8), limit: 3) { reader throws(DecodingFailure) in try reader.skip() }
    }
    #expect(throws: DecodingFailure(.stringTooLong(limit: 3), offset: 0)) {
      try read(#""abcd""#) { reader throws(DecodingFailure) in try reader.string(limit: 3) }
    }
    #expect(throws: DecodingFailure(.stringTooLong(limit: 3), offset: 0)) {
      try read(#""\u0061bcd""#) { reader throws(DecodingFailure) in try reader.string(limit: 3) }
    }
    #expect(try read(#""abc""#) { reader throws(DecodingFailure) in try reader.string(limit: 3) } == "abc")
    #expect(try read(#""\u0061bc""#) { reader throws(DecodingFailure) in try reader.string(limit: 3) } == "abc")
  }

  @Test("the number of members of an object is limited")
  func membersAreLimited() {
    let members = (0...JSONReader.memberLimit).map { "\"\($0)\":1" }.joined(separator: ",")
    let failure = problem(Array("{\(members)}".utf8)) { reader throws(DecodingFailure) in
      try reader.object { reader, _ throws(DecodingFailure) in try reader.skip() }
    }
    #expect(failure?.problem == .tooManyMembers(limit: JSONReader.memberLimit))
  }

  @Test("integers are exact: overflow and fractions are refused")
  func integersAreExact() throws {
    func integer<I: FixedWidthInteger>(_ text: String, _ type: I.Type) throws(DecodingFailure) -> I {
      try read(text) { reader throws(DecodingFailure) in try reader.integer() }
    }
    #expect(try integer("9223372036854775807", Int64.self) == .max)
    #expect(try integer("-9223372036854775808", Int64.self) == .min)
    #expect(try integer("255", UInt8.self) == 255)
    #expect(try integer("-0", UInt8.self) == 0)
    #expect(throws: DecodingFailure(.integerOverflow, offset: 0)) { try integer("9223372036854775808", Int64.self) }
    #expect(throws: DecodingFailure(.integerOverflow, offset: 0)) { try integer("-9223372036854775809", Int64.self) }
    #expect(throws: DecodingFailure(.integerOverflow, offset: 0)) { try integer("256", UInt8.self) }
    #expect(throws: DecodingFailure(.integerOverflow, offset: 0)) { try integer("-1", UInt8.self) }
    for (text, value) in [
      ("1.0", 1), ("-0.0", 0), ("1e3", 1000), ("1.5E+3", 1500), ("-2.50e1", -25), ("100e-2", 1), ("0e-7", 0),
      ("0.00e99999999999999999999", 0), ("9007199254740993.0", 9_007_199_254_740_993), ("0.00120e4", 12),
      ("922337203685477580.7e1", .max), ("-92233720368547758080000e-4", .min),
    ] as [(String, Int64)] {
      #expect(try integer(text, Int64.self) == value, "\(text)")
    }
    for text in ["1.5", "1e-1", "0.1e0", "123e-2", "1e-99999999999999999999", "10.00000000000000000001"] {
      #expect(throws: DecodingFailure(.notAnInteger, offset: 0), "\(text)") { try integer(text, Int64.self) }
    }
    for text in ["1e19", "9223372036854775808.0", "1e99999999999999999999", "-9223372036854775809e0"] {
      #expect(throws: DecodingFailure(.integerOverflow, offset: 0), "\(text)") { try integer(text, Int64.self) }
    }
    #expect(throws: DecodingFailure(.integerOverflow, offset: 0)) { try integer("2.56e2", UInt8.self) }
  }

  @Test("a failure names the path of its field")
  func aFailureNamesItsField() {
    let failure = problem(Array(#"{"task":{"after":["a",7]}}"#.utf8)) { reader throws(DecodingFailure) in
      try reader.object { reader, _ throws(DecodingFailure) in
        try reader.object { reader, _ throws(DecodingFailure) in
          try reader.array { reader, _ throws(DecodingFailure) in _ = try reader.string() }
        }
      }
    }
    #expect(failure?.description == "task.after[1]: expected a string (byte 22)")
  }

  @Test(
    "invalid UTF-8 is refused at its first wrong byte",
    arguments: [
      ([0x22, 0xFF, 0x22], 1), ([0x22, 0xC0, 0x80, 0x22], 1), ([0x22, 0xED, 0xA0, 0x80, 0x22], 1),
      ([0x22, 0x61, 0xE2, 0x82, 0x22], 2), ([0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], 1),
      ([0x22, 0xF0, 0x80, 0x80, 0x80, 0x22], 1), ([0x22, 0xE0, 0x80, 0xAF, 0x22], 1),
    ] as [([UInt8], Int)])
  func refusesInvalidUTF8(bytes: [UInt8], offset: Int) {
    let failure = problem(bytes) { reader throws(DecodingFailure) in try reader.skip() }
    #expect(failure == DecodingFailure(.invalidUTF8, offset: offset))
  }
}
