import TaskCore
import Testing

@testable import ReelhaulCurl
@testable import TransferEngine

/// A machine and a server on a clock of their own: every request is answered at once, and has a rate of its own.
private struct Simulation {
  typealias Request = MachineDriver.Request

  var machine: MachineDriver
  let size: Int64
  /// Bytes per second of a request, by its number from 1 on, at an offset of the file.
  let rate: (_ id: Int, _ offset: Int64) -> Int64
  /// If set, the source redirects to signed URLs that are accepted for so many milliseconds.
  var lifetime: Int64?
  /// The server answers so many requests at a time, and refuses others with 403.
  var places = Int.max
  /// So many requests for the last bytes of the file are never answered.
  var silences = 0
  /// How many milliseconds other answers took, as the machine is told.
  var delay: Int64?
  private(set) var redirects = 0
  private(set) var refusals = 0
  private(set) var clock: Int64 = 0
  private(set) var canceled: [Int] = []
  private(set) var isComplete = false
  private(set) var running: [Int: Transfer] = [:]
  private var sampledAt: Int64 = 0

  struct Transfer {
    let offset: Int64
    var count: Int64
    let begunAt: Int64
    var received: Int64 = 0
    /// What its rate brought beyond whole bytes, in thousandths.
    var rest: Int64 = 0
    var isSilent = false
  }

  init(
    size: Int64, firstConnections: Int = 2, lifetime: Int64? = nil,
    rate: @escaping (_ id: Int, _ offset: Int64) -> Int64
  ) throws {
    (self.size, self.lifetime, self.rate) = (size, lifetime, rate)
    var limits = DownloadLimits()
    (limits.connections, limits.firstConnections, limits.sealAbove) = (16, firstConnections, .max)
    machine = MachineDriver(
      source: try #require(CurlURL("http://a/film.mp4")), destination: try StorageURL("storage://default/film.mp4"),
      expect: TaskCore.Expectation(), generation: 0, limits: limits)
    perform(machine.begin(resuming: nil))
  }

  /// Goes on, a millisecond at a time, until the file is complete, or `end` at the latest.
  mutating func run(until end: Int64) {
    while !isComplete, clock < end { step() }
  }

  private mutating func step() {
    clock += 1
    for id in running.keys.sorted() {
      guard var transfer = running[id], !transfer.isSilent else { continue }
      transfer.rest += rate(id, transfer.offset + transfer.received)
      transfer.received = min(transfer.received + transfer.rest / 1000, transfer.count)
      transfer.rest %= 1000
      running[id] = transfer
      machine.wrote(id, received: transfer.received)
      if transfer.received == transfer.count { end(id, nil) }
    }
    guard clock - sampledAt >= machine.sampleInterval else { return }
    let arrived = running.sorted { $0.key < $1.key }.map { ($0.key, $0.value.received) }
    let elapsed = clock - sampledAt
    sampledAt = clock
    perform(machine.sampled(milliseconds: elapsed, arrived: arrived))
  }

  private mutating func end(_ id: Int, _ error: CurlError?) {
    guard let transfer = running.removeValue(forKey: id) else { return }
    let time = clock - transfer.begunAt
    perform(machine.ended(id, received: transfer.received, error: error, milliseconds: time, delay: delay))
  }

  private mutating func perform(_ actions: [MachineDriver.Action]) {
    for action in actions {
      switch action {
      case .request(let request): answer(request)
      case .cancel(let id):
        canceled.append(id)
        end(id, .canceled)
      case .shorten(let id, let count):
        running[id]?.count = count
      case .complete: isComplete = true
      default: break
      }
    }
  }

  private mutating func answer(_ request: Request) {
    if let lifetime, request.isAtSource {
      redirects += 1
      let location = CurlHead.Field(name: "location", value: "/signed/\(clock + lifetime)")
      _ = machine.head(CurlHead(status: 302, fields: [location]), of: request.id, now: 0)
      perform(machine.ended(request.id, received: 0, error: nil, milliseconds: 0))
      return
    }
    if running.count >= places || request.expiry ?? .max < clock {
      refusals += 1
      _ = machine.head(CurlHead(status: 403), of: request.id, now: 0)
      perform(machine.ended(request.id, received: 0, error: .aborted, milliseconds: 0))
      return
    }
    var range: Range<Int64>
    switch request.asked {
    case .first(let count): range = 0..<min(count, size)
    case .part(let part, _): range = part
    case .whole: return
    }
    running[request.id] = Transfer(offset: range.lowerBound, count: Int64(range.count), begunAt: clock)
    if range.upperBound == size, silences > 0 {
      silences -= 1
      running[request.id]?.isSilent = true
      return
    }
    let head = CurlHead(
      status: 206,
      fields: [
        .init(name: "content-range", value: "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"),
        .init(name: "content-length", value: "\(range.count)"), .init(name: "etag", value: "\"1\""),
      ])
    perform(machine.head(head, of: request.id, now: 0).1)
  }
}

extension DownloadMachine.Request {
  fileprivate var isAtSource: Bool { url == "http://a/film.mp4" }
  /// When the signed URL expires.
  fileprivate var expiry: Int64? { url.split(separator: "/").last.flatMap { Int64($0) } }
}

/// Downloads whose requests have very different rates.
@Suite struct DownloadMachineTailTests {
  private static let mebibyte: Int64 = 1 << 20

  @Test("a download that may have only one connection keeps a fast one")
  func keepsAFastOne() throws {
    var run = try Simulation(size: 1 << 30) { id, _ in id == 1 ? 1 << 10 : 300 << 10 }
    run.run(until: 5000)
    #expect(run.running.count == 16)
    run.machine.allow(1)
    run.run(until: 7000)
    #expect(run.running.count == 1)
    #expect(run.canceled.contains(1) && run.canceled.count == 15)
  }

  @Test("a request that drips or hangs does not hold up the end of a file", arguments: [600, 0])
  func aSlowTail(rate: Int64) throws {
    var run = try Simulation(size: 64 << 20) { id, offset in
      id == 3 && offset % (4 << 20) >= 1 << 20 ? rate : 8 << 20
    }
    run.run(until: 300_000)
    #expect(run.isComplete && run.clock <= 10_000, "\(run.clock) ms")
    #expect(run.canceled == [3])
  }

  @Test(
    "a request for the end of a file that is never answered is sent again, and not too soon",
    arguments: [64, 8, 9, 12, 18, 34] as [Int64])
  func aSilentTail(mebibytes: Int64) throws {
    var run = try Simulation(size: mebibytes << 20) { _, _ in 8 << 20 }
    (run.silences, run.delay) = (1, 20)
    run.run(until: 300_000)
    #expect(run.isComplete && 2000...6000 ~= run.clock, "\(run.clock) ms")
    #expect(run.canceled.count == 1)
  }

  @Test("a download whose only connection hangs opens one more, and not one after the other")
  func theOnlyConnectionHangs() throws {
    var hanging = try Simulation(size: 64 << 20, firstConnections: 1) { _, _ in 0 }
    hanging.run(until: 10_000)
    #expect(hanging.running.count == 2)
    var run = try Simulation(size: 64 << 20, firstConnections: 1) { id, _ in id == 1 ? 0 : 8 << 20 }
    run.run(until: 300_000)
    #expect(run.isComplete && run.clock <= 20_000, "\(run.clock) ms")
  }

  @Test("a long end of a file does not teach that few connections are enough, and is not asked for again and again")
  func aLongTailTeachesNothing() throws {
    let size: Int64 = 64 << 20
    var run = try Simulation(size: size) { _, offset in offset >= size - (100 << 10) ? 2000 : 8 << 20 }
    run.run(until: 40_000)
    #expect(run.running.count == 1 && !run.isComplete)
    #expect(run.canceled.count == 2)
    #expect(run.machine.experience?.connections == 16)
    #expect((run.machine.experience?.rate ?? 0) > 1 << 20)
    run.run(until: 60_000)
    #expect(run.isComplete)
  }

  @Test("a signed URL that expires while others still run is renewed at once, with about one refusal")
  func aSignedURLIsRenewedAtOnce() throws {
    var run = try Simulation(size: 128 << 20, lifetime: 1000) { _, _ in 1 << 20 }
    run.run(until: 300_000)
    #expect(run.isComplete && run.clock <= 12_000, "\(run.clock) ms")
    #expect(run.redirects >= 3 && Int64(run.redirects) <= run.clock / 1000 + 2)
    #expect(run.refusals <= 2 * run.redirects, "\(run.refusals) after \(run.redirects) redirects")
  }

  @Test("if a fresh URL is refused as well while others are answered, the run goes on with those")
  func aFreshURLIsRefusedAsWell() throws {
    var run = try Simulation(size: 128 << 20, lifetime: 1_000_000) { _, _ in 1 << 20 }
    run.places = 4
    run.run(until: 300_000)
    #expect(run.isComplete && run.clock <= 45_000, "\(run.clock) ms")
    #expect(run.refusals <= 100, "\(run.refusals)")
  }
}
