import ReelhaulSystem
import TaskCore
import Testing

@testable import ReelhaulCurl
@testable import TransferEngine

/// Tests the machine without sockets and files.
@Suite struct DownloadMachineTests {
  typealias Machine = MachineDriver

  static let size: Int64 = 100 << 20
  static let identity = SourceIdentity(finalURL: "http://a/film.mp4", size: size, etag: "\"1\"")

  private func machine(
    expect: TaskCore.Expectation = TaskCore.Expectation(), _ change: (inout DownloadLimits) -> Void = { _ in }
  ) throws -> Machine {
    var limits = DownloadLimits()
    change(&limits)
    return Machine(
      source: try #require(CurlURL("http://a/film.mp4")), destination: try StorageURL("storage://default/film.mp4"),
      expect: expect, generation: 0, limits: limits)
  }

  /// The head of a server that behaves correctly.
  private func head(_ request: Machine.Request, etag: String = "\"1\"", size: Int64 = size) -> CurlHead {
    let range: Range<Int64>
    switch request.asked {
    case .first(let count): range = 0..<min(count, size)
    case .part(let part, _): range = part
    case .whole:
      return CurlHead(
        status: 200, fields: [.init(name: "content-length", value: "\(size)"), .init(name: "etag", value: etag)])
    }
    let value = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"
    return CurlHead(
      status: 206,
      fields: [
        .init(name: "content-range", value: value), .init(name: "content-length", value: "\(range.count)"),
        .init(name: "etag", value: etag),
      ])
  }

  private func requests(_ actions: [Machine.Action]) -> [Machine.Request] {
    actions.compactMap { if case .request(let request) = $0 { request } else { nil } }
  }

  @Test("the first request is the probe and the first chunk")
  func theFirstRequestIsProbeAndChunkInOne() throws {
    var machine = try machine()
    let first = try #require(requests(machine.begin(resuming: nil)).first)
    #expect(first.asked == .first(count: 4 << 20))
    #expect(first.ifRange == nil)
    let (reception, actions) = machine.head(head(first), of: first.id, now: 0)
    #expect(reception == .write(offset: 0, count: 4 << 20))
    #expect(actions.first == .openStaging(generation: 0, size: Self.size))
    let second = try #require(requests(actions).first)
    #expect(second.ifRange == "\"1\"")
    guard case .part(let range, _) = second.asked else {
      Issue.record("\(second.asked)")
      return
    }
    #expect(range.lowerBound == 4 << 20)
  }

  @Test("every byte of a file is fetched exactly once")
  func aWholeFileIsFetchedByteByByteExactlyOnce() throws {
    var machine = try machine { $0.sealAbove = .max }
    var open = requests(machine.begin(resuming: nil))
    var written = ByteRanges()
    var generator = SplitMix64(seed: 5)
    var ended: [Machine.Action] = []
    while let index = open.indices.randomElement(using: &generator) {
      let request = open.remove(at: index)
      let (reception, actions) = machine.head(head(request), of: request.id, now: 0)
      open += requests(actions)
      guard case .write(let offset, let count?) = reception else {
        Issue.record("\(reception)")
        return
      }
      // Some requests are cut short, and other requests fetch the missing bytes.
      let received = Bool.random(using: &generator) ? count : Int64.random(in: 1 << 16...count, using: &generator)
      written.insert(offset..<offset + received)
      let error = received == count ? nil : CurlError(.cut, isRetryable: true, message: "")
      ended = machine.ended(request.id, received: received, error: error, milliseconds: 100)
      open += requests(ended)
      if ended.contains(where: { if case .pause = $0 { true } else { false } }) {
        ended = machine.retryDue()
        open += requests(ended)
      }
    }
    #expect(ended == [.complete(bytes: Self.size)])
    #expect(written == ByteRanges(0..<Self.size))
  }

  @Test("requests that are too many are ended early, and their rest is fetched by others without counting as a failure")
  func surplusRequestsAreRetired() throws {
    var machine = try machine { $0.connections = 16 }
    var open = requests(machine.begin(resuming: nil))
    open += requests(machine.head(head(open[0]), of: open[0].id, now: 0).1)
    for _ in 0..<8 {
      for request in open where machine.isUnanswered(request.id) {
        open += requests(machine.head(head(request), of: request.id, now: 0).1)
      }
      open += requests(machine.sampled(milliseconds: 50, arrived: open.map { ($0.id, 100_000) }))
    }
    #expect(open.count == 16)
    machine.allow(4)
    let retired = machine.sampled(milliseconds: 1000, arrived: open.map { ($0.id, 200_000) }).compactMap {
      if case .cancel(let id) = $0 { id } else { nil }
    }
    #expect(Set(retired) == Set(open.map(\.id).suffix(12)), "the youngest")
    for id in retired {
      #expect(machine.ended(id, received: 200_000, error: .canceled, milliseconds: 1000) == [])
    }
    #expect(machine.sampled(milliseconds: 1000, arrived: open.prefix(4).map { ($0.id, 300_000) }) == [])
    machine.allow(5)
    let next = requests(machine.sampled(milliseconds: 1000, arrived: open.prefix(4).map { ($0.id, 400_000) }))
    #expect(next.count == 1, "one more is allowed, and the governor was not set back")
  }

  @Test("a limited download gives its connection back after its turn while others wait, and only then")
  func aLimitedDownloadGivesWay() throws {
    let rate: Int64 = 20_000
    let turn = DownloadLimits().chunks.turn(at: rate)
    var machine = try machine { $0.connections = 1 }
    let first = try #require(requests(machine.begin(resuming: nil)).first)
    #expect(machine.head(head(first), of: first.id, now: 0).0 == .write(offset: 0, count: 4 << 20))
    machine.limit(to: rate, isAwaited: false)
    #expect(machine.sampled(milliseconds: 1000, arrived: [(first.id, turn)]) == [], "nobody waits")
    machine.limit(to: nil, isAwaited: true)
    #expect(machine.sampled(milliseconds: 1000, arrived: [(first.id, turn)]) == [], "it is not limited")
    machine.limit(to: rate, isAwaited: true)
    #expect(machine.sampled(milliseconds: 1000, arrived: [(first.id, turn)]) == [.cancel(first.id)])
    #expect(machine.sampled(milliseconds: 1000, arrived: [(first.id, turn)]) == [])
    let ended = machine.ended(first.id, received: turn, error: .canceled, milliseconds: 10_000)
    let next = try #require(requests(ended).first)
    guard case .part(let range, _) = next.asked else { return }
    #expect(range == turn..<2 * turn, "one turn")
    _ = machine.head(head(next), of: next.id, now: 0)
    #expect(machine.sampled(milliseconds: 9000, arrived: [(next.id, turn - 1)]) == [], "it ends by itself")
  }

  /// As a server does that serves one kept connection at a time: the others stay in its backlog.
  @Test("a request that the server leaves without an answer while it answers later ones is given up, and others go on")
  func unservedRequestsAreGivenUp() throws {
    var machine = try machine { $0.connections = 2 }
    let first = try #require(requests(machine.begin(resuming: nil)).first)
    let stuck = try #require(requests(machine.head(head(first), of: first.id, now: 0).1).first)
    #expect(machine.sampled(milliseconds: 1000, arrived: [(first.id, 1 << 20)]) == [])
    var served = try #require(
      requests(machine.ended(first.id, received: 4 << 20, error: nil, milliseconds: 2000)).first)
    var canceled: [Int] = []
    for overtaker in 1...2 {
      _ = machine.head(head(served), of: served.id, now: 0)
      canceled = machine.sampled(milliseconds: 1000, arrived: [(served.id, 1 << 20)]).compactMap {
        if case .cancel(let id) = $0 { id } else { nil }
      }
      guard overtaker == 1 else { break }
      #expect(canceled == [], "one that overtakes it is not enough")
      guard case .part(let range, _) = served.asked else { return }
      let ended = machine.ended(served.id, received: Int64(range.count), error: nil, milliseconds: 1000)
      served = try #require(requests(ended).first)
    }
    #expect(canceled == [stuck.id])
    #expect(machine.server.governor.connections == 1)
    #expect(machine.ended(stuck.id, received: 0, error: .canceled, milliseconds: 3000) == [])
    guard case .part(let given, _) = stuck.asked, case .part(let range, _) = served.asked else { return }
    let next = machine.ended(served.id, received: Int64(range.count), error: nil, milliseconds: 1000)
    guard case .part(let taken, _) = try #require(requests(next).first).asked else { return }
    #expect(taken.lowerBound == given.lowerBound, "its bytes are fetched first")
    #expect(machine.phase == .fetching)
  }

  @Test(
    "one request too many that the source refuses costs a connection, also as a 403",
    arguments: [403, 429, 503])
  func aRefusalAtTheSourceSetsTheGovernorBack(status: Int) throws {
    var machine = try machine { $0.connections = 16 }
    var open = requests(machine.begin(resuming: nil))
    open += requests(machine.head(head(open[0]), of: open[0].id, now: 0).1)
    while open.count < 4 {
      for request in open where machine.isUnanswered(request.id) {
        open += requests(machine.head(head(request), of: request.id, now: 0).1)
      }
      open += requests(machine.sampled(milliseconds: 50, arrived: open.map { ($0.id, 100_000) }))
    }
    let connections = machine.server.governor.connections
    let last = try #require(open.last { machine.isUnanswered($0.id) })
    _ = machine.head(CurlHead(status: status), of: last.id, now: 0)
    let actions = machine.ended(last.id, received: 0, error: .aborted, milliseconds: 1)
    #expect(!actions.contains { if case .pause = $0 { true } else { false } }, "the others go on")
    #expect(machine.phase == .fetching)
    #expect(machine.server.governor.connections == connections - 1)
  }

  /// The other downloads of this worker from the host last longer than any number of retries.
  @Test("a request that the host refuses because of others of this process is no failure", arguments: [nil, 2])
  func aSurplusRequestWaitsForItsTurn(retryAfter: Int?) throws {
    var machine = try machine()
    var actions = machine.begin(resuming: nil)
    let head = CurlHead(status: 503, fields: retryAfter.map { [.init(name: "retry-after", value: "\($0)")] } ?? [])
    func refuse(_ actions: [Machine.Action], isSurplus: Bool) -> [Machine.Action] {
      guard let request = requests(actions).first else { return [] }
      _ = machine.head(head, of: request.id, now: 0)
      return machine.ended(request.id, received: 0, error: nil, milliseconds: 1, isSurplus: isSurplus)
    }
    for _ in 0..<20 {
      let refused = refuse(actions, isSurplus: true)
      #expect(refused == [.pause(milliseconds: retryAfter == nil ? 1600 : 4000)])
      actions = machine.retryDue()
    }
    for _ in 0..<machine.limits.retries {
      guard case .pause? = refuse(actions, isSurplus: false).first else {
        Issue.record("the surplus requests were counted")
        return
      }
      actions = machine.retryDue()
    }
    guard case .end(.failed(let failure))? = refuse(actions, isSurplus: false).first else {
      Issue.record("a host that refuses for another reason is asked for ever")
      return
    }
    #expect(failure.code == .http(503) && failure.class == .retry)
  }

  @Test("if it is to come back later than a run waits, the task waits, and the attempt does not count")
  func aSurplusRequestThatIsToComeLaterWaits() throws {
    var machine = try machine()
    let request = try #require(requests(machine.begin(resuming: nil)).first)
    let head = CurlHead(status: 429, fields: [.init(name: "retry-after", value: "60")])
    _ = machine.head(head, of: request.id, now: 0)
    let end = machine.ended(request.id, received: 0, error: nil, milliseconds: 1, isSurplus: true)
    guard case .end(.failed(let failure))? = end.first else {
      Issue.record("\(end)")
      return
    }
    #expect(failure.code == .http(429) && failure.class == .wait && failure.retryAfter == 60)
  }

  @Test("a connection that others of this process have instead costs the download none of its own")
  func aSurplusRequestDoesNotSetTheGovernorBack() throws {
    var machine = try machine()
    let first = try #require(requests(machine.begin(resuming: nil)).first)
    let second = try #require(requests(machine.head(head(first), of: first.id, now: 0).1).first)
    _ = machine.head(CurlHead(status: 503), of: second.id, now: 0)
    #expect(machine.ended(second.id, received: 0, error: nil, milliseconds: 1, isSurplus: true) == [])
    #expect(machine.server.governor.connections == 2)
  }

  @Test("a changed source starts a new generation after all requests have ended")
  func aChangedSourceStartsAnewOnceAllRequestsHaveEnded() throws {
    var machine = try machine()
    let first = try #require(requests(machine.begin(resuming: nil)).first)
    let second = try #require(requests(machine.head(head(first), of: first.id, now: 0).1).first)
    let (reception, _) = machine.head(head(second, etag: "\"2\""), of: second.id, now: 0)
    #expect(reception == .refuse)
    let actions = machine.ended(second.id, received: 0, error: .aborted, milliseconds: 1)
    #expect(actions == [.cancel(first.id)])
    let again = machine.ended(first.id, received: 1000, error: .canceled, milliseconds: 1)
    #expect(requests(again).first?.asked == .first(count: 4 << 20))
    #expect(machine.generation == 1)
    #expect(machine.identity == nil)
  }

  /// Its servers may name the same bytes differently.
  @Test("a source that changes again is asked on one connection, and then for the whole, if its length stays the same")
  func aSourceThatChangesAgainIsPinned() throws {
    for size in [Self.size, Self.size + 1] {
      var machine = try machine { $0.firstConnections = 4 }
      var open = requests(machine.begin(resuming: nil))
      var connections: [Int] = []
      for change in 1...3 {
        let first = open[0]
        open += requests(machine.head(head(first, etag: "\"\(change)\""), of: first.id, now: 0).1)
        connections.append(open.count)
        if open.count == 1 { open += requests(machine.ended(first.id, received: 4 << 20, error: nil, milliseconds: 1)) }
        let last = try #require(open.last)
        _ = machine.head(head(last, etag: "\"x\"", size: size), of: last.id, now: 0)
        var actions: [Machine.Action] = []
        for request in open.reversed() {
          actions += machine.ended(request.id, received: 0, error: .canceled, milliseconds: 1)
        }
        open = requests(actions)
        #expect(open.count == 1)
      }
      #expect(connections == (size == Self.size ? [4, 4, 1] : [4, 4, 4]))
      #expect(open[0].asked == (size == Self.size ? .whole : .first(count: 4 << 20)))
    }
  }

  /// For a moment, one of the source's servers had an older or a newer version.
  @Test("a version that comes back is continued with its bytes")
  func aVersionThatComesBackIsGoneOnWith() throws {
    var machine = try machine()
    let first = try #require(requests(machine.begin(resuming: nil)).first)
    let second = try #require(requests(machine.head(head(first), of: first.id, now: 0).1).first)
    _ = machine.head(head(second, etag: "\"2\""), of: second.id, now: 0)
    machine.wrote(first.id, received: 4 << 20)
    #expect(machine.ended(second.id, received: 0, error: .aborted, milliseconds: 1) == [.cancel(first.id)])
    let probe = try #require(
      requests(machine.ended(first.id, received: 4 << 20, error: .canceled, milliseconds: 1)).first)
    #expect(probe.asked == .first(count: 4 << 20) && machine.generation == 1)
    let (reception, actions) = machine.head(head(probe), of: probe.id, now: 0)
    #expect(reception == .refuse && actions == [], "the received bytes are kept and not fetched again")
    #expect(machine.generation == 0 && machine.isResumable)
    let next = try #require(requests(machine.ended(probe.id, received: 0, error: .aborted, milliseconds: 1)).first)
    guard case .part(let range, Self.identity) = next.asked else {
      Issue.record("\(next.asked)")
      return
    }
    #expect(range.lowerBound == 4 << 20)
  }

  /// Runs a machine until it asks whether the source is still the same.
  private func sealing() throws -> (machine: Machine, seal: Machine.Request) {
    var machine = try machine()
    let checkpoint = DownloadCheckpoint(
      generation: 0, identity: Self.identity, volume: UniqueID(high: 0, low: 1), stagingName: "x",
      done: ByteRanges(0..<Self.size))
    let seal = try #require(requests(machine.begin(resuming: checkpoint)).first)
    #expect(machine.phase == .sealing)
    return (machine, seal)
  }

  @Test("a file is complete even if the source refuses the last question", arguments: [401, 403, 404, 405, 410, 416])
  func aRefusedLastQuestionRefutesNothing(
    status: Int
  ) throws {
    var (machine, seal) = try sealing()
    _ = machine.head(CurlHead(status: status), of: seal.id, now: 0)
    #expect(
      machine.ended(seal.id, received: 0, error: .aborted, milliseconds: 1) == [.complete(bytes: Self.size)])
  }

  /// An outage: no response, an error, or a web page with a status of success.
  @Test(
    "the last question is repeated some times before the file counts as complete",
    arguments: [
      nil, CurlHead(status: 503), CurlHead(status: 200, fields: [.init(name: "content-type", value: "text/html")]),
    ])
  func theLastQuestionIsAskedSomeTimes(answer: CurlHead?) throws {
    var (machine, seal) = try sealing()
    for _ in 0..<machine.limits.retries {
      if let answer { _ = machine.head(answer, of: seal.id, now: 0) }
      let actions = machine.ended(
        seal.id, received: 0, error: CurlError(.cut, isRetryable: true, message: ""), milliseconds: 1)
      guard case .pause? = actions.first else {
        Issue.record("\(actions)")
        return
      }
      seal = try #require(requests(machine.retryDue()).first)
    }
    if let answer { _ = machine.head(answer, of: seal.id, now: 0) }
    #expect(
      machine.ended(seal.id, received: 0, error: CurlError(.cut, isRetryable: true, message: ""), milliseconds: 1)
        == [.complete(bytes: Self.size)])
  }

  @Test("a new version at the last question starts a new generation")
  func aNewVersionAtTheEndStartsAnew() throws {
    var (machine, seal) = try sealing()
    _ = machine.head(head(seal, etag: "\"2\""), of: seal.id, now: 0)
    let actions = machine.ended(seal.id, received: 0, error: .aborted, milliseconds: 1)
    #expect(requests(actions).first?.asked == .first(count: 4 << 20))
  }

  /// Every request for a range is redirected separately.
  @Test("redirects are counted for each request")
  func redirectsAreCountedForEachRequest() throws {
    var machine = try machine {
      $0.redirects = 3
      $0.firstConnections = 3
    }
    let first = try #require(requests(machine.begin(resuming: nil)).first)
    var open = requests(machine.head(head(first), of: first.id, now: 0).1)
    let redirect = CurlHead(status: 302, fields: [.init(name: "location", value: "/next")])
    #expect(open.count == 2)
    for _ in 0..<3 {
      open = open.flatMap { request in
        _ = machine.head(redirect, of: request.id, now: 0)
        return requests(machine.ended(request.id, received: 0, error: nil, milliseconds: 1))
      }
      #expect(open.map(\.url) == ["http://a/next", "http://a/next"])
    }
    let last = try #require(open.first)
    _ = machine.head(redirect, of: last.id, now: 0)
    _ = machine.ended(last.id, received: 0, error: nil, milliseconds: 1)
    guard case .ending(.failed(let failure)) = machine.phase else {
      Issue.record("\(machine.phase)")
      return
    }
    #expect(failure.code == .redirectLoop)
  }

  /// Otherwise the server to which the source redirects could choose which of the source's URLs gets the secrets.
  @Test("headers are not sent to the source's host after another host redirects back to it")
  func headersDoNotReturnByARedirect() throws {
    var machine = try machine()
    var request = try #require(requests(machine.begin(resuming: nil)).first)
    var isAtOrigin = [request.isAtOrigin]
    for target in ["/moved", "http://b/film.mp4", "http://a/echo"] {
      let redirect = CurlHead(status: 302, fields: [.init(name: "location", value: target)])
      _ = machine.head(redirect, of: request.id, now: 0)
      request = try #require(requests(machine.ended(request.id, received: 0, error: nil, milliseconds: 1)).first)
      isAtOrigin.append(request.isAtOrigin)
    }
    #expect(isAtOrigin == [true, true, false, false])
    let next = requests(machine.head(head(request), of: request.id, now: 0).1)
    #expect(next.first?.url == "http://a/echo" && next.first?.isAtOrigin == false)
  }

  @Test("a resumed run asks only for missing bytes and compares the source")
  func aResumedRunAsksForWhatIsMissingAndComparesTheSource() throws {
    var machine = try machine()
    var checkpoint = DownloadCheckpoint(
      generation: 3, identity: Self.identity, volume: UniqueID(high: 0, low: 1), stagingName: "x",
      done: ByteRanges(0..<(8 << 20)))
    checkpoint.tailCRC = 1
    let first = try #require(requests(machine.begin(resuming: checkpoint)).first)
    guard case .part(let range, let identity) = first.asked else {
      Issue.record("\(first.asked)")
      return
    }
    #expect(range.lowerBound == 8 << 20)
    #expect(identity == Self.identity)
    #expect(first.ifRange == "\"1\"")
    #expect(machine.isResumable)
  }

  @Test("without a strong validator a new run starts a new generation")
  func withoutAStrongValidatorNothingIsResumed() throws {
    var machine = try machine()
    let weak = SourceIdentity(finalURL: "http://a/film.mp4", size: Self.size, etag: "\"1\"", etagIsWeak: true)
    let checkpoint = DownloadCheckpoint(
      generation: 0, identity: weak, volume: UniqueID(high: 0, low: 1), stagingName: "x", done: ByteRanges(0..<100))
    #expect(requests(machine.begin(resuming: checkpoint)).first?.asked == .first(count: 4 << 20))
    #expect(machine.generation == 1)
    #expect(!machine.isResumable)
  }

  @Test("headers of the source are not sent to a signed URL on another host")
  func aSignedURLIsNotGivenTheHeadersOfTheSource() throws {
    var machine = try machine()
    let first = try #require(requests(machine.begin(resuming: nil)).first)
    #expect(first.isAtOrigin)
    let redirect = CurlHead(status: 302, fields: [.init(name: "location", value: "https://b/film.mp4")])
    #expect(machine.head(redirect, of: first.id, now: 0).0 == .skip)
    let second = try #require(requests(machine.ended(first.id, received: 0, error: nil, milliseconds: 1)).first)
    #expect(second.url == "https://b/film.mp4")
    #expect(!second.isAtOrigin)
  }

  @Test("a stop waits for running requests")
  func stoppingWaitsForTheRequestsThatRun() throws {
    var machine = try machine()
    let first = try #require(requests(machine.begin(resuming: nil)).first)
    #expect(machine.stop() == [.cancel(first.id)])
    #expect(machine.stop() == [])
    #expect(machine.ended(first.id, received: 0, error: .canceled, milliseconds: 1) == [.end(.stopped)])
  }

  @Test("after the last retry the run ends with the last failure")
  func retriesEndWithTheLastFailure() throws {
    var machine = try machine { $0.retries = 2 }
    var actions = machine.begin(resuming: nil)
    for _ in 0..<2 {
      let request = try #require(requests(actions).first)
      let error = CurlError(.connectFailed, isRetryable: true, message: "no")
      let pause = machine.ended(request.id, received: 0, error: error, milliseconds: 1)
      guard case .pause = pause.first else {
        Issue.record("\(pause)")
        return
      }
      actions = machine.retryDue()
    }
    let request = try #require(requests(actions).first)
    let error = CurlError(.connectFailed, isRetryable: true, message: "no")
    guard case .end(.failed(let failure)) = machine.ended(request.id, received: 0, error: error, milliseconds: 1).first
    else {
      Issue.record("the machine continues")
      return
    }
    #expect(failure.code == .connectFailed)
    #expect(failure.class == .retry)
  }
}
