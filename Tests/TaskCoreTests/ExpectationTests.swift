import TaskCore
import Testing

@Suite struct ExpectationTests {
  static let right = [UInt8](repeating: 7, count: 32)
  static let wrong = [UInt8](repeating: 8, count: 32)

  @Test func whatIsNotExpectedIsAccepted() {
    #expect(TaskCore.Expectation(bytes: 3).accepts(sha256: nil, md5: nil))
    #expect(TaskCore.Expectation().accepts(sha256: Self.right, md5: [1]))
    #expect(TaskCore.Expectation(sha256: Self.right, md5: [1]).accepts(sha256: Self.right, md5: [1]))
  }

  @Test(arguments: [
    TaskCore.Expectation(sha256: wrong), TaskCore.Expectation(md5: [2]), TaskCore.Expectation(sha256: right, md5: [2]),
    TaskCore.Expectation(sha256: wrong, md5: [1]),
  ])
  func whatDiffersIsNot(expect: TaskCore.Expectation) {
    #expect(!expect.accepts(sha256: Self.right, md5: [1]))
    #expect(!expect.accepts(sha256: nil, md5: nil))
  }
}
