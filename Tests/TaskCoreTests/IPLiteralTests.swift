import Glibc
import ReelhaulSystem
import Testing

@testable import TaskCore

/// The literals are checked by hand (TaskCore imports no C): libc must give the same answers.
@Suite struct IPLiteralTests {
  private static func bytes<Value>(_ text: String, _ body: (Slice<UnsafeBufferPointer<UInt8>>) -> Value) -> Value {
    var text = text
    return text.withUTF8 { body($0[...]) }
  }

  private static func random(_ alphabet: [String], _ most: Int, _ random: inout SplitMix64) -> String {
    (0..<Int.random(in: 0...most, using: &random)).map { _ in
      alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
    }.joined()
  }

  @Test("an IPv6 literal is one exactly if inet_pton reads it", arguments: 1...8 as ClosedRange<UInt64>)
  func ipv6(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var valid = 0
    for _ in 0..<20_000 {
      let text = Self.random(
        [":", ":", "::", "0", "1:", "ab:", "ffff:", "12345", "g", "1.2.3.4", "256.1.1.1", "."], 9, &random)
      var address = in6_addr()
      let isAddress = inet_pton(AF_INET6, text, &address) == 1
      valid += isAddress ? 1 : 0
      #expect((Self.bytes(text, IPv6Literal.problem) == nil) == isAddress, "\(text)")
    }
    #expect(valid > 100)
  }

  @Test("a dotted IPv4 address is one exactly if inet_pton reads it", arguments: 1...8 as ClosedRange<UInt64>)
  func ipv4(_ seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var valid = 0
    for _ in 0..<20_000 {
      let text = Self.random(["0", "1.", "25", "5.", "9", ".", "300", "01", "7.", "x", "2.3."], 7, &random)
      var address = in_addr()
      let isAddress = inet_pton(AF_INET, text, &address) == 1
      valid += isAddress ? 1 : 0
      #expect(Self.bytes(text, IPv4Literal.isDotted) == isAddress, "\(text)")
    }
    #expect(valid > 50)
  }
}
