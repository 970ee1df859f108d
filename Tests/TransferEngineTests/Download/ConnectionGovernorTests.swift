import ReelhaulSystem
import Testing

@testable import TransferEngine

private let mebibyte: Int64 = 1 << 20

/// A server and the way to it: what arrives on each connection in each millisecond. Bytes per second.
private struct Link {
  /// What one connection gets; `nil`: as much as there is.
  var connection: Int64?
  /// What all get together.
  var total: Int64 = 1 << 40
  /// What each connection gets at once when it begins.
  var burst: Int64 = 0
  /// Milliseconds until a new connection moves its first byte.
  var delay: Int64 = 0
  /// Bytes come in lumps, so many milliseconds apart.
  var lumps: Int64 = 1
  /// Each connection's rate is another one in each sample, by so many percent up or down.
  var noise = 0
}

/// Runs a governor against a link. Connections that it takes away are the youngest.
private struct Run {
  let link: Link
  var governor: ConnectionGovernor
  private(set) var clock: Int64 = 0
  /// The connections at the end of each second.
  private(set) var seconds: [Int] = []
  private(set) var moved: Int64 = 0
  private var ages: [Int64] = []
  private var random = SplitMix64(seed: 1)

  init(_ link: Link, maximum: Int = 16, start: Int = 2) {
    self.link = link
    governor = ConnectionGovernor(maximum: maximum, start: start)
  }

  mutating func go(seconds count: Int64) {
    let end = clock + count * 1000
    while clock < end { step() }
  }

  mutating func step() {
    while ages.count < governor.connections { ages.append(0) }
    ages.removeLast(ages.count - governor.connections)
    let time = governor.interval
    let bytes = ages.map { age in
      let noise = Int64(Int.random(in: 100 - link.noise...100 + link.noise, using: &random))
      return (arrived(by: age + time) - arrived(by: age)) * noise / 100
    }
    let sum = bytes.reduce(0, +)
    let most = link.total * time / 1000
    let scale = sum > most ? Double(most) / Double(sum) : 1
    let settled = zip(ages, bytes).filter { $0.0 > 0 }
    moved += Int64(Double(sum) * scale)
    governor.observe(
      ConnectionGovernor.Sample(
        milliseconds: time, bytes: Int64(Double(sum) * scale), settled: settled.count,
        settledBytes: Int64(Double(settled.map(\.1).reduce(0, +)) * scale)))
    ages = ages.map { $0 + time }
    if (clock + time) / 1000 > clock / 1000 { seconds.append(governor.connections) }
    clock += time
  }

  /// On a connection of this age, were it alone.
  private func arrived(by age: Int64) -> Int64 {
    guard age > link.delay else { return 0 }
    let time = (age - link.delay) / link.lumps * link.lumps
    return link.burst + (link.connection ?? link.total) * time / 1000
  }
}

struct ConnectionGovernorTests {
  @Test("a slow server gets all connections within half a second, whether it begins with a burst or not")
  func aSlowServerGetsAllConnectionsAtOnce() {
    let links = [
      Link(connection: 8 * mebibyte), Link(connection: 8 * mebibyte, burst: 8 * mebibyte),
      Link(connection: 100_000), Link(connection: mebibyte, delay: 40, noise: 30),
      Link(connection: 8 * mebibyte, burst: 8 * mebibyte, lumps: 100),
    ]
    for link in links {
      var run = Run(link)
      while run.clock < 600 { run.step() }
      #expect(run.governor.connections == 16, "\(link)")
      run.go(seconds: 30)
      let most = (link.connection ?? 0) * 16 * 30
      #expect(run.moved > most * 85 / 100, "\(run.seconds) \(link)")
    }
  }

  @Test("a server that is fast per connection gets more while each brings its share")
  func connectionsThatBringTheirShareAreKept() {
    var run = Run(Link(connection: 40 * mebibyte))
    run.go(seconds: 3)
    #expect(run.governor.connections == 16, "\(run.seconds)")
  }

  @Test("a burst of any length does not keep a run at few connections", arguments: [1, 4, 16, 64, 200] as [Int64])
  func aBurstMisleadsNobody(burst: Int64) {
    for rate in [1, 4, 8, 20] as [Int64] {
      var run = Run(Link(connection: rate * mebibyte, total: 400 * mebibyte, burst: burst * mebibyte))
      run.go(seconds: 5)
      #expect(run.governor.connections == 16, "\(rate) MiB/s: \(run.seconds)")
    }
  }

  @Test("the number of connections comes back to what saturates the link", arguments: [1, 2, 3, 4, 6] as [Int])
  func comesBackToWhatIsEnough(enough: Int) {
    var run = Run(Link(connection: 10 * mebibyte, total: Int64(enough) * 10 * mebibyte))
    run.go(seconds: 60)
    let settled = run.seconds.suffix(20)
    #expect(settled.allSatisfy { $0 >= enough / 2 && $0 <= max(enough * 2, enough + 2) }, "\(run.seconds)")
    // What the trials cost.
    #expect(run.moved > run.link.total * 60 * 85 / 100)
  }

  @Test("one or two connections are enough for a server that is as fast as the machine")
  func oneConnectionIsEnoughForAFastServer() {
    var run = Run(Link(total: 600 * mebibyte))
    run.go(seconds: 30)
    #expect(run.seconds.allSatisfy { $0 <= 4 }, "\(run.seconds)")
    #expect(run.seconds.filter { $0 > 2 }.count <= 3, "\(run.seconds)")
  }

  @Test("a noisy link does not keep a run at few connections", arguments: [10, 30, 60])
  func noiseMisleadsNobodyForLong(noise: Int) {
    var run = Run(Link(connection: 8 * mebibyte, noise: noise))
    run.go(seconds: 120)
    #expect(run.seconds.filter { $0 < 8 }.count <= 12, "\(run.seconds)")
  }

  @Test("a server that becomes slower per connection gets more again within seconds")
  func aServerThatBecomesSlowerGetsMore() {
    var run = Run(Link(total: 300 * mebibyte))
    run.go(seconds: 20)
    #expect(run.governor.connections <= 3)
    var slow = Run(Link(connection: 4 * mebibyte))
    slow.governor = run.governor
    slow.go(seconds: 4)
    #expect(slow.governor.connections == 16, "\(slow.seconds)")
  }

  @Test("no connection is added beyond what a limit of the task needs")
  func aLimitIsReachedWithAsFewAsItTakes() {
    var run = Run(Link(connection: 8 * mebibyte), start: 1)
    run.governor.wanted = 6 * mebibyte
    run.go(seconds: 30)
    #expect(run.seconds.allSatisfy { $0 == 1 })
    run = Run(Link(connection: mebibyte, total: 6 * mebibyte), start: 1)
    run.governor.wanted = 6 * mebibyte
    run.go(seconds: 8)
    #expect(run.governor.connections >= 6, "\(run.seconds)")
  }

  @Test(
    "a download whose limit one connection carries opens one, however slowly its bytes begin",
    arguments: [true, false])
  func smallLimit(isShared: Bool) {
    let rate: Int64 = 100 << 10
    var governor = ConnectionGovernor(maximum: 16, start: 1)
    if isShared { governor.share = rate } else { governor.wanted = rate }
    var most = 1
    for number: Int64 in 0..<200 {
      // The first windows have less than the limit, and no byte was held back yet.
      let isHeldBack = number > 4
      let bytes = (isHeldBack ? rate : rate / 2) * governor.interval / 1000
      governor.observe(
        .init(
          milliseconds: governor.interval, bytes: bytes, settled: 1, settledBytes: bytes, isHeldBack: isHeldBack))
      // Others begin and end.
      governor.allowed = number % 2 == 0 ? 8 : 16
      governor.allowed = number % 3 == 0 ? 1 : 16
      most = max(most, governor.connections)
    }
    #expect(most == 1)
  }

  @Test("a small limit that one connection does not carry gets more")
  func smallLimitOfASlowServer() {
    var run = Run(Link(connection: 30 << 10), start: 1)
    run.governor.wanted = 100 << 10
    run.go(seconds: 30)
    #expect((3...4).contains(run.governor.connections))
  }

  @Test("what the run itself holds back is no reason for more connections")
  func whatIsHeldBackIsNoReason() {
    var governor = ConnectionGovernor(maximum: 16, start: 1)
    for _ in 0..<100 {
      governor.observe(.init(milliseconds: 1000, bytes: 1000, settled: 1, settledBytes: 1000, isHeldBack: true))
      #expect(governor.connections == 1)
    }
  }

  @Test("a server that is known begins with what was right for it")
  func beginsWithWhatIsKnown() {
    #expect(ConnectionGovernor(maximum: 16, start: 12, rate: 1_000_000).connections == 12)
    #expect(ConnectionGovernor(maximum: 4, start: 12, rate: 1_000_000).connections == 4)
  }

  @Test("a number that is known for a host is given up as soon as each connection brings less")
  func whatIsKnownIsGivenUpWhenItNoLongerHolds() {
    var run = Run(Link(connection: mebibyte))
    run.governor = ConnectionGovernor(maximum: 16, start: 2, rate: 100 * mebibyte)
    run.go(seconds: 4)
    #expect(run.governor.connections == 16, "\(run.seconds)")
  }

  @Test("a download that shares its host has its share at once, and all as soon as it is alone")
  func theShareOfAHostIsKept() {
    var run = Run(Link(connection: mebibyte))
    run.governor.allowed = 3
    run.go(seconds: 5)
    #expect(run.seconds.allSatisfy { $0 == 3 }, "\(run.seconds)")
    #expect(!run.governor.isSettled, "it did not find out more than its share")
    run.governor.allowed = 16
    run.go(seconds: 1)
    #expect(run.governor.connections == 16)
    run.governor.allowed = 1
    #expect(run.governor.connections == 1)
  }

  @Test("an answer that the download holds back is no verdict on a trial")
  func whatIsHeldBackIsNoVerdict() {
    var run = Run(Link(total: 600 * mebibyte))
    run.go(seconds: 1)
    let before = run.governor.connections
    for _ in 0..<20 {
      run.governor.observe(.init(milliseconds: 1000, bytes: 0, settled: before, settledBytes: 0, isHeldBack: true))
      #expect(run.governor.connections <= before)
    }
  }

  @Test("the number of connections does not reach a number that was refused within the next minute")
  func notAsManyAsWereRefused() {
    var run = Run(Link(connection: mebibyte))
    while run.governor.connections < 8 { run.step() }
    let refused = run.governor.connections
    run.governor.refused(answered: refused - 1)
    #expect(run.governor.connections == refused - 1)
    let end = run.clock + 58_000
    while run.clock < end {
      run.step()
      #expect(run.governor.connections < refused)
    }
    for _ in 0..<20 { run.governor.refused(answered: 0) }
    #expect(run.governor.connections == 1)
  }

  /// As when a proxy loads its configuration: every new request is refused, while those that run go on.
  @Test("a second of refusals does not keep a run at few connections", arguments: 0...15)
  func aSecondOfRefusals(answered: Int) {
    var run = Run(Link(connection: mebibyte))
    run.go(seconds: 5)
    #expect(run.governor.connections == 16)
    for number in 0..<16 { run.governor.refused(answered: max(0, answered - number)) }
    run.go(seconds: 1)
    #expect(run.governor.connections == 1, "not asked again at once")
    run.go(seconds: 100)
    #expect(run.governor.connections >= 12, "\(run.seconds)")
  }

  @Test("a server that serves four connections refuses few more, and has four all the time")
  func aServerThatServesFour() {
    var run = Run(Link(connection: mebibyte))
    var refusals = 0
    while run.clock < 600_000 {
      run.step()
      while run.governor.connections > 4 {
        run.governor.refused(answered: 4)
        refusals += 1
      }
    }
    #expect(refusals <= 20, "the first, and some after 1, 3 and 7 minutes")
    #expect(run.seconds.allSatisfy { $0 >= 2 } && run.seconds.dropFirst(2).allSatisfy { $0 >= 3 }, "\(run.seconds)")
  }

  @Test("a connection that broke after it had moved bytes is replaced at once, several that broke within seconds")
  func aBrokenConnectionIsReplaced() {
    var run = Run(Link(connection: mebibyte))
    run.go(seconds: 2)
    run.governor.broke()
    run.governor.broke()
    #expect(run.governor.connections == 16, "both broke at once")
    run.go(seconds: 2)
    run.governor.broke()
    #expect(run.governor.lasting == 16)
    #expect(run.governor.connections == 15)
    run.go(seconds: 10)
    #expect(run.governor.connections == 16, "\(run.seconds)")
  }

  @Test("the number of connections stays within its bounds", arguments: 0..<20 as Range<UInt64>)
  func staysWithinItsBounds(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    let maximum = Int.random(in: 1...16, using: &generator)
    var governor = ConnectionGovernor(maximum: maximum, start: 4)
    for _ in 0..<300 {
      switch Int.random(in: 0..<20, using: &generator) {
      case 0: governor.refused(answered: Int.random(in: 0...16, using: &generator))
      case 1: governor.broke()
      default:
        governor.observe(
          .init(
            milliseconds: Int64.random(in: Int64.min...Int64.max, using: &generator),
            bytes: Int64.random(in: Int64.min...Int64.max, using: &generator),
            settled: Int.random(in: 0...16, using: &generator),
            settledBytes: Int64.random(in: Int64.min...Int64.max, using: &generator),
            isHeldBack: Bool.random(using: &generator)))
      }
      #expect((1...maximum).contains(governor.connections))
      #expect(governor.interval > 0)
    }
  }
}
