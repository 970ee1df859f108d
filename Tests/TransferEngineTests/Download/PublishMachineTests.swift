import TaskCore
import Testing

@testable import TransferEngine

@Suite struct PublishMachineTests {
  static let digest = [UInt8](repeating: 7, count: 32)
  static let wrong = [UInt8](repeating: 8, count: 32)

  @Test func theStepsComeInTheirOrder() {
    var machine = PublishMachine(expect: TaskCore.Expectation(sha256: Self.digest))
    #expect(machine.begin() == .verify)
    let publishing = Checkpoint.Publishing(sha256: Self.digest)
    #expect(machine.handle(.verified(sha256: Self.digest, md5: nil)) == .record(publishing))
    #expect(machine.handle(.recorded) == .move)
    #expect(machine.handle(.moved) == .succeed(sha256: Self.digest))
  }

  @Test(arguments: [
    TaskCore.Expectation(sha256: wrong), TaskCore.Expectation(md5: [1]), TaskCore.Expectation(sha256: digest, md5: [1]),
  ])
  func nothingIsRecordedOfAWrongDigest(expect: TaskCore.Expectation) {
    var machine = PublishMachine(expect: expect)
    #expect(machine.handle(.verified(sha256: Self.digest, md5: [2])) == .digestMismatch)
  }

  @Test func withoutHashingThereIsNoDigest() {
    var machine = PublishMachine(expect: TaskCore.Expectation())
    #expect(machine.handle(.verified(sha256: nil, md5: nil)) == .record(Checkpoint.Publishing(sha256: [])))
    #expect(machine.handle(.moved) == .succeed(sha256: nil))
  }

  @Test func afterACrashTheRenameIsDoneOrFound() {
    var machine = PublishMachine(expect: TaskCore.Expectation())
    let publishing = Checkpoint.Publishing(sha256: Self.digest)
    #expect(machine.begin(recovering: publishing, hasStaging: true) == .move)
    #expect(machine.handle(.moved) == .succeed(sha256: Self.digest))
    #expect(machine.begin(recovering: publishing, hasStaging: false) == .inspectDestination)
    #expect(machine.handle(.inspected(isRecordedFile: true)) == .succeed(sha256: Self.digest))
    #expect(machine.handle(.inspected(isRecordedFile: false)) == .restart)
  }

  @Test func aDestinationThatCameMeanwhileIsLeft() {
    var machine = PublishMachine(expect: TaskCore.Expectation())
    _ = machine.handle(.verified(sha256: Self.digest, md5: nil))
    #expect(machine.handle(.skipped) == .succeed(sha256: nil))
  }

  @Test func aFailureEndsIt() {
    var machine = PublishMachine(expect: TaskCore.Expectation())
    let failure = TaskFailure(code: "disk_full", message: "full", class: .wait)
    #expect(machine.handle(.failed(failure)) == .fail(failure))
  }
}
