import TaskCore
import Testing

@testable import reelhaul

@Suite struct TaskIDTests {
  @Test(
    "a task is named by its id or by at least 6 of its last digits",
    arguments: [
      ("0a7e4b11", "0a7e4b11"), ("6D2F0A7E4B11", "6d2f0a7e4b11"), ("9d3e-6d2f0a7e4b11", "9d3e6d2f0a7e4b11"),
      ("7e4b11", "7e4b11"), ("019adf3e5a007cc19d3e6d2f0a7e4b11", "019adf3e5a007cc19d3e6d2f0a7e4b11"),
    ])
  func endingsAreNames(word: String, digits: String) throws {
    #expect(try TaskID.parse([word]) == [.ending(#require(IDEnding(digits)))])
    #expect(IDEnding(word)?.digits == digits)
  }

  @Test("a whole id is not an ending")
  func aWholeIDIsOne() throws {
    let id = UniqueID(high: 0x019a_0000_0000_7000, low: 7)
    #expect(try TaskID.parse(["\(id)"]) == [.whole(id)])
  }

  @Test(
    "other words are refused",
    arguments: ["", "-", "e4b11", "e4-b1-1-", "film.mp4", "%abcdef", "0a7e4bxx", "0019adf3e5a007cc19d3e6d2f0a7e4b11"])
  func otherWordsAreRefused(word: String) {
    #expect(throws: (any Error).self) { try TaskID.parse([word]) }
  }
}
