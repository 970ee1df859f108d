import TaskCore
import Testing

@testable import ReelhaulCurl
@testable import TransferEngine

/// The machine with a server whose bodies end with their connection.
@Suite struct DownloadMachineUnframedTests {
  typealias Machine = MachineDriver

  static let size: Int64 = 5 << 20

  private func machine(
    expect: TaskCore.Expectation = TaskCore.Expectation(), allowsUnframed: Bool = true
  ) throws -> Machine {
    Machine(
      source: try #require(CurlURL("http://a/film.mp4")), destination: try StorageURL("storage://default/film.mp4"),
      expect: expect, allowsUnframed: allowsUnframed, generation: 0, limits: DownloadLimits())
  }

  private static let unframed = CurlHead(status: 200, fields: [.init(name: "etag", value: "\"1\"")])
  private static let cut = CurlError(.cut, isRetryable: true, message: "")

  private func request(_ actions: [Machine.Action]) throws -> Machine.Request {
    try #require(actions.compactMap { if case .request(let request) = $0 { request } else { nil } }.first)
  }

  private func failure(_ actions: [Machine.Action]) -> TaskFailure? {
    if case .end(.failed(let failure)) = actions.last { failure } else { nil }
  }

  private func isPause(_ actions: [Machine.Action]) -> Bool {
    if case .pause = actions.last { actions.count == 1 } else { false }
  }

  /// Sends the first request, and lets its body end after `size` bytes.
  private func first(_ machine: inout Machine, _ actions: [Machine.Action]? = nil) throws -> [Machine.Action] {
    let first = try request(actions ?? machine.begin(resuming: nil))
    let (reception, _) = machine.head(Self.unframed, of: first.id, now: 0)
    #expect(reception == .write(offset: 0, count: nil))
    return machine.ended(first.id, received: Self.size, error: nil, milliseconds: 1)
  }

  /// The head of the second answer.
  private func second(
    _ machine: inout Machine, _ actions: [Machine.Action], _ head: CurlHead = unframed
  ) throws -> (Int, Reception) {
    let second = try request(actions)
    #expect(second.asked == .whole)
    return (second.id, machine.head(head, of: second.id, now: 0).0)
  }

  @Test("without the option a body without an end is refused before a byte is written")
  func theOptionIsNeeded() throws {
    var machine = try machine(allowsUnframed: false)
    let first = try request(machine.begin(resuming: nil))
    #expect(machine.head(Self.unframed, of: first.id, now: 0).0 == .refuse)
    let failure = failure(machine.ended(first.id, received: 0, error: .aborted, milliseconds: 1))
    #expect(failure?.code == .lengthUnknown)
    #expect(failure?.class == .fail)
  }

  @Test("what is expected proves a body, and the strongest of it is named")
  func anExpectationIsAProof() throws {
    for (expect, proof) in [
      (TaskCore.Expectation(sha256: [1], md5: [2], bytes: Self.size), Verification.sha256),
      (TaskCore.Expectation(md5: [2], bytes: Self.size), .md5), (TaskCore.Expectation(bytes: Self.size), .bytes),
    ] {
      var machine = try machine(expect: expect)
      let first = try request(machine.begin(resuming: nil))
      _ = machine.head(Self.unframed, of: first.id, now: 0)
      var actions = machine.ended(first.id, received: Self.size, error: nil, milliseconds: 1)
      if proof == .bytes {
        // The validator shows that the source is still the same.
        let seal = try request(actions)
        _ = machine.head(Self.unframed, of: seal.id, now: 0)
        actions = machine.ended(seal.id, received: 0, error: .aborted, milliseconds: 1)
      }
      #expect(actions == [.complete(bytes: Self.size)])
      #expect(machine.version?.proof == proof)
    }
  }

  @Test("a body with a length needs no proof, whether the option is given or not", arguments: [false, true])
  func aBodyWithAnEndNeedsNoProof(allowsUnframed: Bool) throws {
    for field in [("content-length", "\(Self.size)"), ("transfer-encoding", "chunked")] {
      var machine = try machine(allowsUnframed: allowsUnframed)
      let first = try request(machine.begin(resuming: nil))
      let head = CurlHead(status: 200, fields: [.init(name: field.0, value: field.1)])
      _ = machine.head(head, of: first.id, now: 0)
      let actions = machine.ended(first.id, received: Self.size, error: nil, milliseconds: 1)
      if field.0 == "content-length" { #expect(machine.phase == .sealing) }
      if field.0 == "transfer-encoding" { #expect(actions == [.complete(bytes: Self.size)]) }
      #expect(machine.version?.proof == nil)
    }
  }

  @Test("boxes that add up prove a body, and no second one is fetched")
  func aContainerIsAProof() throws {
    var machine = try machine()
    #expect(try first(&machine) == [.inspect(bytes: Self.size)])
    let seal = try request(machine.inspected(addsUp: true))
    #expect(machine.phase == .sealing && seal.asked != .whole)
    _ = machine.head(Self.unframed, of: seal.id, now: 0)
    #expect(
      machine.ended(seal.id, received: 0, error: .aborted, milliseconds: 1) == [.complete(bytes: Self.size)])
    #expect(machine.version?.proof == .container)
  }

  @Test("otherwise a second body is compared with the first, whatever its validators say")
  func aSecondBodyIsAProof() throws {
    for fields in [[("etag", "\"2\"")], [], [("content-length", "\(Self.size)")]] {
      var machine = try machine()
      _ = try first(&machine)
      #expect(!machine.isResumable)
      let head = CurlHead(status: 200, fields: fields.map { .init(name: $0.0, value: $0.1) })
      let (id, reception) = try second(&machine, machine.inspected(addsUp: false), head)
      #expect(reception == .compare(count: Self.size))
      #expect(machine.isResumable && machine.isUnproven)
      #expect(machine.identity == SourceIdentity(finalURL: "http://a/film.mp4", size: Self.size))
      #expect(
        machine.ended(id, received: Self.size, error: nil, milliseconds: 1) == [.complete(bytes: Self.size)])
      #expect(machine.version?.proof == .twoFetches)
    }
  }

  @Test("a second body of another length voids the first, and after the last retry the run ends")
  func differingBodiesAreFetchedAgain() throws {
    var machine = try machine()
    var begin: [Machine.Action]?
    for round in 0...DownloadLimits().retries {
      _ = try first(&machine, begin)
      #expect(machine.generation == round)
      let isLong = round.isMultiple(of: 2)
      let (id, _) = try second(&machine, machine.inspected(addsUp: false))
      let actions = machine.ended(
        id, received: isLong ? Self.size : 7, error: isLong ? .aborted : nil, milliseconds: 1)
      if round < DownloadLimits().retries {
        #expect(isPause(actions))
        begin = machine.retryDue()
      } else {
        let failure = failure(actions)
        #expect(failure?.code == .fetchesDiffer)
        #expect(failure?.class == .retry)
      }
    }
  }

  @Test("a second body that announces another length is refused, and voids the first")
  func anotherLengthIsRefused() throws {
    var machine = try machine()
    _ = try first(&machine)
    let head = CurlHead(status: 200, fields: [.init(name: "content-length", value: "7")])
    let (id, reception) = try second(&machine, machine.inspected(addsUp: false), head)
    #expect(reception == .refuse)
    #expect(isPause(machine.ended(id, received: 0, error: .aborted, milliseconds: 1)))
    #expect(try request(machine.retryDue()).asked == .whole)
    #expect(machine.generation == 1)
  }

  @Test("a second body of the same length and another digest voids the first")
  func anotherDigestVoidsTheFirst() throws {
    var machine = try machine()
    _ = try first(&machine)
    let (id, _) = try second(&machine, machine.inspected(addsUp: false))
    _ = machine.ended(id, received: Self.size, error: nil, milliseconds: 1)
    let mismatch = try #require(
      DigestMismatch(TaskCore.Expectation(sha256: [1]), FileDigests(sha256: [2], md5: nil)))
    #expect(isPause(machine.digestMismatched(mismatch)))
    _ = machine.retryDue()
    #expect(machine.generation == 1 && !machine.isUnproven)
  }

  @Test("a second body that is lost on its way is fetched again, and the first is kept")
  func aLostSecondBodyKeepsTheFirst() throws {
    var machine = try machine()
    _ = try first(&machine)
    var (id, _) = try second(&machine, machine.inspected(addsUp: false))
    #expect(isPause(machine.ended(id, received: 7, error: Self.cut, milliseconds: 1)))
    id = try second(&machine, machine.retryDue()).0
    #expect(machine.ended(id, received: Self.size, error: nil, milliseconds: 1) == [.complete(bytes: Self.size)])
    #expect(machine.generation == 0)
  }

  @Test("a stop during the inspection ends the run, and a late result changes nothing")
  func aStopDuringTheInspectionEndsTheRun() throws {
    var machine = try machine()
    _ = try first(&machine)
    #expect(machine.stop() == [.end(.stopped)])
    #expect(machine.inspected(addsUp: true) == [])
    #expect(machine.phase == .ended)
  }

  @Test(
    "a recorded body that nothing has proven is compared with a second one, and never published without",
    arguments: [0, 1])
  func aRecordedBodyIsCompared(missing: Int64) throws {
    var machine = try machine()
    let checkpoint = DownloadCheckpoint(
      generation: 0, identity: SourceIdentity(finalURL: "http://a/film.mp4", size: Self.size),
      volume: UniqueID(high: 1, low: 1), stagingName: "x", done: ByteRanges(0..<Self.size - missing), isUnproven: true)
    let actions = machine.begin(resuming: checkpoint)
    guard missing == 0 else {
      // It was recorded while the last bytes came: nothing says that the others belong to it.
      #expect(try request(actions).asked == .first(count: DownloadLimits().firstChunk))
      #expect(machine.generation == 1)
      return
    }
    let (id, reception) = try second(&machine, actions)
    #expect(reception == .compare(count: Self.size))
    #expect(machine.ended(id, received: Self.size, error: nil, milliseconds: 1) == [.complete(bytes: Self.size)])
    #expect(machine.version?.proof == .twoFetches)
  }
}
