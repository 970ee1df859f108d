import ReelhaulSystem
import TestKit
import Testing

@testable import TransferEngine

struct HostConnectionsTests {
  @Test("a host gets no more connections than the limit, and those who wait get them in their order")
  func theLimitHoldsAndTheLineIsKept() async throws {
    let hosts = HostConnections(limit: 2)
    #expect(
      hosts.take("a:80", for: "default") && hosts.take("a:80", for: "default") && !hosts.take("a:80", for: "default"))
    #expect(hosts.take("b:80", for: "default"), "another host has its own")
    let order = Lock<[Int]>([])
    var waiting: [Task<Void, any Error>] = []
    for number in 0..<5 {
      waiting.append(
        Task {
          try await hosts.wait(for: "a:80", for: "default")
          order.withLock { $0.append(number) }
        })
      try await eventually("it stands in line") { hosts.waiting(for: "a:80") == number + 1 }
    }
    for count in 1...5 {
      hosts.giveBack("a:80", for: "default")
      try await eventually("the next one has it") { order.withLock { $0.count } == count }
    }
    #expect(order.withLock { $0 } == [0, 1, 2, 3, 4])
    #expect(!hosts.take("a:80", for: "default"), "two are in use still")
    for _ in 0..<2 { hosts.giveBack("a:80", for: "default") }
    #expect(hosts.take("a:80", for: "default"))
  }

  @Test("a run stands in line while it waits for a connection and has none")
  func aRunKnowsWhetherItStandsInLine() async throws {
    let hosts = HostConnections(limit: 2)
    let line = HostLine()
    #expect(hosts.take("a:80", for: "default"))
    try await HostLine.$current.withValue(line) {
      #expect(hosts.take("a:80", for: "default"))
      let second = Task { try await hosts.wait(for: "a:80", for: "default") }
      try await eventually("it waits") { hosts.waiting(for: "a:80") == 1 }
      #expect(!line.place.isInLine, "it has one")
      let third = Task { try await hosts.wait(for: "a:80", for: "default") }
      try await eventually("it waits") { hosts.waiting(for: "a:80") == 2 }
      hosts.giveBack("a:80", for: "default")
      try await second.value
      #expect(!line.place.isInLine)
      third.cancel()
      await #expect(throws: CancellationError.self) { try await third.value }
      let fourth = Task { try await hosts.wait(for: "b:80", for: "default") }
      try await fourth.value
      hosts.giveBack("b:80", for: "default")
      hosts.giveBack("a:80", for: "default")
      #expect(!line.place.isInLine)
    }
    #expect(hosts.take("a:80", for: "default"))
    let waiting = HostLine.$current.withValue(line) { Task { try await hosts.wait(for: "a:80", for: "default") } }
    try await eventually("it stands in line") { line.place == .init(server: "a:80", isInLine: true) }
    hosts.giveBack("a:80", for: "default")
    try await waiting.value
    #expect(!line.place.isInLine)
  }

  @Test("who is canceled while waiting leaves the line, before, within and after")
  func canceledWaitersLeaveTheLine() async throws {
    let hosts = HostConnections(limit: 1)
    #expect(hosts.take("a:80", for: "default"))
    let early = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await hosts.wait(for: "a:80", for: "default")
    }
    await #expect(throws: CancellationError.self) { try await early.value }
    let late = Task { try await hosts.wait(for: "a:80", for: "default") }
    try await eventually("it waits") { hosts.waiting(for: "a:80") == 1 }
    late.cancel()
    await #expect(throws: CancellationError.self) { try await late.value }
    #expect(hosts.waiting(for: "a:80") == 0)
    hosts.giveBack("a:80", for: "default")
    #expect(hosts.take("a:80", for: "default"))
  }

  @Test("many that take, wait, are canceled and give back never exceed the limit, and nothing is lost")
  func neverMoreThanTheLimit() async throws {
    let hosts = HostConnections(limit: 3)
    let used = Lock<(now: Int, most: Int)>((0, 0))
    await withTaskGroup { group in
      for number in 0..<200 {
        group.addTask {
          if !hosts.take("a:80", for: "default") {
            let waiting = Task { try await hosts.wait(for: "a:80", for: "default") }
            if number % 5 == 0 { waiting.cancel() }
            guard (try? await waiting.value) != nil else { return }
          }
          used.withLock {
            $0.now += 1
            $0.most = max($0.most, $0.now)
          }
          await Task.yield()
          used.withLock { $0.now -= 1 }
          hosts.giveBack("a:80", for: "default")
        }
      }
    }
    #expect(used.withLock { $0.most } <= 3)
    #expect((0..<3).allSatisfy { _ in hosts.take("a:80", for: "default") } && !hosts.take("a:80", for: "default"))
  }

  @Test("a storage that gives nothing back does not keep another from its one connection")
  func aStorageThatHangsHoldsUpNoOther() async throws {
    let hosts = HostConnections(limit: 2)
    for _ in 0..<2 { #expect(hosts.take("a:80", for: "hangs")) }
    let stuck = Task { try await hosts.wait(for: "a:80", for: "hangs") }
    try await eventually("it waits") { hosts.waiting(for: "a:80") == 1 }
    #expect(hosts.take("a:80", for: "default"), "ahead of the line")
    #expect(!hosts.take("a:80", for: "default"))
    let next = Task { try await hosts.wait(for: "a:80", for: "default") }
    try await eventually("it waits") { hosts.waiting(for: "a:80") == 2 }
    hosts.giveBack("a:80", for: "default")
    try await next.value
    stuck.cancel()
    await #expect(throws: CancellationError.self) { try await stuck.value }
  }

  @Test("relays leave half of the connections to others, of which one may always run beside them")
  func relaysLeaveConnections() async throws {
    let hosts = HostConnections(limit: 4)
    func take(isRelay: Bool, _ root: String = "default") -> Bool { hosts.take("a:80", for: root, isRelay: isRelay) }
    for _ in 0..<2 { #expect(take(isRelay: true)) }
    #expect(!take(isRelay: true), "half of them")
    let relay = Task { try await hosts.wait(for: "a:80", for: "default", isRelay: true) }
    try await eventually("it waits") { hosts.waiting(for: "a:80") == 1 }
    for _ in 0..<2 { #expect(take(isRelay: false), "no relay can have it now") }
    #expect(!take(isRelay: false))
    let other = Task { try await hosts.wait(for: "a:80", for: "default") }
    try await eventually("it waits") { hosts.waiting(for: "a:80") == 2 }
    hosts.giveBack("a:80", for: "default")
    try await other.value
    #expect(hosts.waiting(for: "a:80") == 1)
    hosts.giveBack("a:80", for: "default", isRelay: true)
    try await relay.value
    #expect(hosts.used == 4 && !take(isRelay: false) && !take(isRelay: true))
    #expect(take(isRelay: true, "second") && take(isRelay: false, "third"), "another storage")
    #expect(take(isRelay: false, "second") && !take(isRelay: false, "second"), "one that is no relay")
  }

  @Test("one request may run beside a relay that has the only connection", arguments: [true, false])
  func besideTheOnlyRelay(isLearned: Bool) {
    let hosts = HostConnections(limit: isLearned ? 16 : 1)
    #expect(hosts.take("a:80", for: "default", isRelay: true))
    if isLearned {
      #expect(hosts.take("a:80", for: "default"))
      hosts.served("a:80")
      #expect(hosts.giveBack("a:80", for: "default", after: .refused), "the host allows one")
    }
    #expect(!hosts.take("a:80", for: "default", isRelay: true))
    #expect(hosts.take("a:80", for: "default") && !hosts.take("a:80", for: "default"))
    hosts.giveBack("a:80", for: "default", isRelay: true)
    #expect(!hosts.take("a:80", for: "default"), "a connection more than the limit is not given to the next")
    hosts.giveBack("a:80", for: "default")
    #expect(hosts.take("a:80", for: "default", isRelay: true) && hosts.used == 1)
  }

  @Test("a connection that is given back serves everyone who has room then")
  func everyoneWithRoomIsServed() async throws {
    let hosts = HostConnections(limit: 2)
    #expect(hosts.take("a:80", for: "one") && hosts.take("a:80", for: "two"))
    let first = Task { try await hosts.wait(for: "a:80", for: "two") }
    try await eventually("it waits") { hosts.waiting(for: "a:80") == 1 }
    let second = Task { try await hosts.wait(for: "a:80", for: "one") }
    try await eventually("it waits") { hosts.waiting(for: "a:80") == 2 }
    hosts.giveBack("a:80", for: "one")
    try await first.value
    // Its storage has no connection now, and so may have one.
    try await second.value
  }

  @Test("transfers of one host share all its connections as equally as they can, and have at least one each")
  func transfersShareEqually() {
    let hosts = HostConnections(limit: 16)
    var transfers: [Int] = []
    func shares() -> [Int] { transfers.map { hosts.share(of: "a:80", for: $0) } }
    for count in 1...16 {
      transfers.append(hosts.enter("a:80"))
      #expect(shares().reduce(0, +) == 16)
      #expect(shares().allSatisfy { (16 / count...16 / count + 1).contains($0) })
    }
    #expect(hosts.share(of: "b:80", for: hosts.enter("b:80")) == 16)
    for _ in 0..<9 { transfers.append(hosts.enter("a:80")) }
    #expect(shares() == Array(repeating: 1, count: 25))
    for transfer in transfers.prefix(19) { hosts.leave("a:80", transfer) }
    transfers.removeFirst(19)
    #expect(shares() == [3, 3, 3, 3, 2, 2])
  }

  /// Takes as many connections as it may, of which the host serves the first `most`. Returns how many it took.
  private func fill(_ hosts: HostConnections, served most: Int) -> Int {
    var count = 0
    while hosts.take("a:80", for: "default") {
      count += 1
      if count <= most { hosts.served("a:80") }
    }
    return count
  }

  @Test("a host that refuses requests while it serves others gets as many as it serves, and after 30 s one more")
  func aHostsOwnLimitIsLearned() async throws {
    let clock = Lock<Int64>(0)
    let hosts = HostConnections(limit: 16) { clock.withLock { $0 } }
    let transfers = (0..<6).map { _ in hosts.enter("a:80") }
    #expect(fill(hosts, served: 2) == 16)
    let waiting = Task { try await hosts.wait(for: "a:80", for: "default") }
    try await eventually("it stands in line") { hosts.waiting(for: "a:80") == 1 }
    for _ in 0..<14 {
      #expect(hosts.giveBack("a:80", for: "default", after: .refused))
      #expect(hosts.waiting(for: "a:80") == 1, "the place is no more")
    }
    #expect(!hosts.take("a:80", for: "other"), "the host does not know storages")
    #expect(transfers.map { hosts.share(of: "a:80", for: $0) } == [1, 1, 1, 1, 1, 1])
    hosts.giveBack("a:80", for: "default", after: .served)
    try await waiting.value
    hosts.served("a:80")

    let next = Task { try await hosts.wait(for: "a:80", for: "default") }
    try await eventually("it stands in line") { hosts.waiting(for: "a:80") == 1 }
    clock.withLock { $0 += 29_000_000_000 }
    hosts.admit(to: "a:80")
    #expect(hosts.waiting(for: "a:80") == 1)
    clock.withLock { $0 += 1_000_000_000 }
    hosts.admit(to: "a:80")
    try await next.value
    #expect(hosts.giveBack("a:80", for: "default", after: .refused) && !hosts.take("a:80", for: "default"))
    clock.withLock { $0 += 10 * 30_000_000_000 }
    #expect(fill(hosts, served: 0) == 10)
    for transfer in transfers.dropFirst() { hosts.leave("a:80", transfer) }
    #expect(hosts.share(of: "a:80", for: transfers[0]) == 12)
  }

  /// Otherwise one URL that is always refused would take the host from all others, and would never fail.
  @Test("a refusal is another's fault if the host serves nobody, or served as many a moment ago")
  func otherRefusalsTeachNothing() {
    let clock = Lock<Int64>(0)
    let hosts = HostConnections(limit: 4) { clock.withLock { $0 } }
    #expect(fill(hosts, served: 0) == 4)
    #expect(!hosts.giveBack("a:80", for: "default", after: .refused), "it serves nobody")
    for _ in 0..<3 { hosts.served("a:80") }
    #expect(hosts.take("a:80", for: "default"))
    hosts.giveBack("a:80", for: "default", after: .served)
    #expect(!hosts.giveBack("a:80", for: "default", after: .refused), "it served three, and this is the third")
    #expect(fill(hosts, served: 0) == 2, "the limit is as it was")
    hosts.giveBack("a:80", for: "default")
    clock.withLock { $0 += 10_000_000_000 }
    #expect(hosts.giveBack("a:80", for: "default", after: .refused), "it serves fewer now")
    #expect(fill(hosts, served: 0) == 0)
  }

  @Test("a host that is late to answer some requests and refuses others at once serves those")
  func lateAnswersCount() {
    let clock = Lock<Int64>(0)
    let hosts = HostConnections(limit: 16) { clock.withLock { $0 } }
    for _ in 0..<4 { #expect(hosts.take("a:80", for: "default")) }
    var numbers = (0..<4).map { _ in hosts.sent(to: "a:80") }
    clock.withLock { $0 += 5_000_000 }
    #expect(!hosts.giveBack("a:80", for: "default", after: .refused, of: numbers.removeLast()), "nothing is known yet")
    #expect(hosts.take("a:80", for: "default"))
    clock.withLock { $0 += 200_000_000 }
    numbers.append(hosts.sent(to: "a:80"))
    clock.withLock { $0 += 5_000_000 }
    #expect(hosts.giveBack("a:80", for: "default", after: .refused, of: numbers.removeLast()))
    #expect(!hosts.take("a:80", for: "default"))
  }

  /// Small files are sent so fast that few answers are under way at a time.
  @Test("a host that takes many requests at once allows as many, although a few URLs are always refused")
  func fewRefusalsTakeLittle() {
    let clock = Lock<Int64>(0)
    let hosts = HostConnections(limit: 16) { clock.withLock { $0 } }
    var requests: [Int] = []
    #expect(hosts.take("a:80", for: "slow"))
    _ = hosts.sent(to: "a:80")
    hosts.served("a:80")
    for round in 1...1000 {
      while hosts.take("a:80", for: "default") { requests.append(hosts.sent(to: "a:80")) }
      clock.withLock { $0 += 30_000_000 }
      if round % 10 == 0 {
        hosts.giveBack("a:80", for: "default", after: .refused, of: requests.removeFirst())
      } else {
        hosts.served("a:80")
        hosts.giveBack("a:80", for: "default", after: .served, of: requests.removeFirst())
      }
    }
    while hosts.take("a:80", for: "default") { requests.append(hosts.sent(to: "a:80")) }
    #expect(requests.count >= 10)
  }

  @Test("what was learned of a host is remembered, and of many hosts only some")
  func experienceIsRemembered() {
    let hosts = HostConnections(limit: 16)
    let experience = HostConnections.Experience(connections: 12, rate: 1_000_000)
    #expect(hosts.experience(of: "a:80") == nil)
    hosts.learned(experience, of: "a:80")
    #expect(hosts.experience(of: "a:80") == experience)
    for number in 0..<5000 { hosts.learned(experience, of: "\(number):80") }
    #expect(hosts.remembered <= 1001)
  }
}
