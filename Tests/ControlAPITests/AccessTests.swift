import HTTPServer
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

@testable import ControlAPI

@Suite struct AccessTests {
  @Test("a scope allows what it names and what is below, and nothing above", arguments: TokenScope.allCases)
  func scopes(scope: TokenScope) {
    let principal = Principal(actor: "a", scope: scope)
    for need in TokenScope.allCases {
      let answer = Access.decide(.scope(need), isPerQueue: false, for: principal)
      let ranks = TokenScope.allCases
      let isEnough = ranks.firstIndex(of: scope)! >= ranks.firstIndex(of: need)!
      #expect((answer == .allowed) == isEnough, "\(scope) for \(need)")
    }
    #expect(Access.decide(.nothing, isPerQueue: false, for: nil) == .allowed)
    #expect(Access.decide(.read, isPerQueue: true, for: nil) == .unknown)
  }

  @Test("who is limited to queues may call only what heeds queues, with any scope") func queues() {
    for scope in TokenScope.allCases {
      let limited = Principal(actor: "a", scope: scope, queues: ["x"])
      guard case .forbidden = Access.decide(.read, isPerQueue: false, for: limited) else {
        Issue.record("it is allowed")
        continue
      }
      #expect(Access.decide(.read, isPerQueue: true, for: limited) == .allowed)
      #expect(limited.reaches(queue: "x") && !limited.reaches(queue: "y"))
      #expect(limited.reachable(of: nil) == ["x"] && limited.reachable(of: ["x", "y"]) == ["x"])
      #expect(limited.reachable(of: ["y"]) == [])
    }
    #expect(Principal.everybody.reachable(of: nil) == nil && Principal.everybody.reaches(queue: "any"))
  }

  @Test("what needs a token is below /v1, and what changes something needs more than a look at it") func routes() {
    for route in ControlAPI.routes {
      if case .nothing = route.need { continue }
      #expect(route.path.hasPrefix("/v1/") || route.path == "/metrics", "\(route.path)")
      // What changes something needs more than a look at it.
      let isSession = route.path == "/v1/session"
      if route.method != "GET", !isSession { #expect(route.need != .read, "\(route.method) \(route.path)") }
    }
  }

  /// Needs that are weaker than these would be holes. What is not named may only be read, with all queues alone.
  @Test("every route needs what the manual says, and only those that heed queues are open to tokens of some")
  func needs() {
    let forWriters: Set = [
      "POST /v1/tasks", "POST /v1/tasks/{id}/actions/{action}", "POST /v1/tasks/{id}/{action}", "POST /v1/operations",
      "POST /v1/operations/{id}/cancel",
    ]
    let forAdmins: Set = [
      "PUT /v1/limits/{scope}", "PUT /v1/limits/{scope}/{name}", "PUT /v1/queues/{name}",
      "POST /v1/workers/{id}/actions/drain", "GET /v1/dead-letters", "GET /v1/dead-letters/{id}",
      "POST /v1/dead-letters/{id}/actions/replay", "POST /v1/dead-letters/{id}/actions/drop",
      "GET /v1/queues/{name}/notify", "PUT /v1/queues/{name}/notify",
    ]
    let forQueues: Set = [
      "GET /v1/tasks", "GET /v1/tasks/{id}", "GET /v1/tasks/{id}/history", "GET /v1/overview", "GET /v1/counts",
      "GET /v1/failures", "GET /v1/queues", "GET /v1/stream", "GET /v1/events", "GET /v1/operations",
      "GET /v1/operations/{id}", "GET /v1/session", "DELETE /v1/session",
    ]
    for route in ControlAPI.routes {
      let name = "\(route.method) \(route.path)"
      if case .nothing = route.need { continue }
      let need: Need = forAdmins.contains(name) ? .admin : forWriters.contains(name) ? .write : .read
      #expect(route.need == need, "\(name)")
      #expect(route.isPerQueue == (forQueues.contains(name) || forWriters.contains(name)), "\(name)")
    }
  }

  @Test("so many at once, then one an interval, each key for itself, and a bounded number of keys") func rates() {
    var limit = RateLimit<String>(every: .seconds(6), burst: 3, mostKeys: 8)
    let start = BootInstant(nanoseconds: 1_000_000_000_000)
    for _ in 0..<3 { #expect(limit.admit("a", at: start) == nil) }
    #expect(limit.admit("a", at: start) == .seconds(6) && limit.admit("b", at: start) == nil)
    #expect(limit.admit("a", at: start + .seconds(5)) == .seconds(1))
    #expect(limit.admit("a", at: start + .seconds(6)) == nil && limit.wait("a", at: start + .seconds(6)) != nil)
    for number in 0..<1000 { _ = limit.admit("\(number)", at: start + .seconds(6)) }
    // Those with the most to wait for are not forgotten because others come.
    #expect(limit.wait("a", at: start + .seconds(6)) != nil)
  }

  @Test("what is taken back is not counted") func takenBack() {
    var limit = RateLimit<String>(every: .seconds(6), burst: 2)
    let start = BootInstant(nanoseconds: 1_000_000_000_000)
    for _ in 0..<10 {
      #expect(limit.admit("a", at: start) == nil)
      limit.takeBack("a")
    }
    #expect(limit.admit("a", at: start) == nil && limit.admit("a", at: start) == nil)
    #expect(limit.admit("a", at: start) != nil)
  }

  /// Answers once it is open, and counts how often it was asked.
  private final class SlowTokens: TokenStore {
    let right: Set<[UInt8]>
    let asked = Lock(0)
    private let expiresAt: Timestamp?
    private let isOpen = Lock(false)

    init(right: [TokenSecret] = [], expiresAt: Timestamp? = nil) {
      self.right = Set(right.map(\.hash))
      self.expiresAt = expiresAt
    }

    func open() { isOpen.withLock { $0 = true } }

    func token(hash: [UInt8]) async throws -> APIToken? {
      asked.withLock { $0 += 1 }
      while !isOpen.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(5)) }
      guard right.contains(hash) else { return nil }
      return APIToken(
        id: .random(), name: "a", scope: .read, createdAt: Timestamp(microseconds: 0), expiresAt: expiresAt)
    }

    func createToken(_ token: NewToken) async throws -> APIToken? { nil }
    func createSession(of parent: UniqueID, hash: [UInt8], lifetime: Duration) async throws -> APIToken? { nil }
    func tokens() async throws -> [APIToken] { [] }
    func revokeToken(_ nameOrID: String) async throws -> APIToken? { nil }
    func endSession(_ id: UniqueID) async throws {}
  }

  @Test("of many wrong tokens at once, only as many are looked up as an address may send") func wrongAtOnce()
    async throws
  {
    let tokens = SlowTokens()
    let authenticator = Authenticator(tokens, wrongTokens: 10)
    let refused = Lock(0)
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { tokens.open() }
      for _ in 0..<150 {
        group.addTask {
          let answer = try await authenticator.answer(TokenSecret().text, isSession: false, address: "a")
          if case .tooMany = answer { refused.withLock { $0 += 1 } }
        }
      }
      try await eventually("all are refused or looked up") {
        refused.withLock { $0 } + tokens.asked.withLock { $0 } == 150
      }
      tokens.open()
      try await group.waitForAll()
    }
    // Time may allow some more.
    let asked = tokens.asked.withLock { $0 }
    #expect(10..<50 ~= asked)
  }

  @Test("wrong tokens of clients that do not wait for the answer count, too") func wrongAndGone() async throws {
    let tokens = SlowTokens()
    let authenticator = Authenticator(tokens, wrongTokens: 10)
    for _ in 0..<20 {
      let request = Task {
        try await authenticator.answer(TokenSecret().text, isSession: false, address: "a")
      }
      request.cancel()
      _ = await request.result
    }
    try await eventually("those that may be are looked up") { tokens.asked.withLock { $0 } >= 10 }
    // Time may allow some more.
    #expect(tokens.asked.withLock { $0 } < 15)
    tokens.open()
  }

  @Test("right tokens use up nothing, at once and one after the other") func rightTokens() async throws {
    let secrets = (0..<30).map { _ in TokenSecret() }
    let tokens = SlowTokens(right: secrets)
    let authenticator = Authenticator(tokens, wrongTokens: 10)
    @Sendable func isRight(_ secret: TokenSecret) async throws -> Bool {
      let answer = try await authenticator.answer(secret.text, isSession: false, address: "a")
      return if case .principal = answer { true } else { false }
    }
    let together = (0..<50).map { _ in Task { try await isRight(secrets[0]) } }
    tokens.open()
    for task in together { #expect(try await task.value) }
    for secret in secrets { #expect(try await isRight(secret)) }
  }

  @Test("a token that the store gives holds, although its end is over by the clock of this machine")
  func storesClock() async throws {
    let secret = TokenSecret()
    let tokens = SlowTokens(right: [secret], expiresAt: Timestamp(microseconds: 1))
    tokens.open()
    #expect(try await Authenticator(tokens, wrongTokens: 10).token(of: secret) != nil)
  }

  @Test("a secret is random, is read only in its form, and is told by its SHA-256") func secrets() {
    let (one, other) = (TokenSecret(), TokenSecret())
    #expect(one.text.hasPrefix("rhl_") && one.text.utf8.count == 47 && one.hash.count == 32 && one != other)
    #expect(TokenSecret(one.text) == one && TokenSecret(one.text + "x") == nil && TokenSecret("") == nil)
    #expect(TokenSecret(String(one.text.dropLast()) + "\u{7f}") == nil)
  }

  @Test("addresses of clients are taken from proxies that are believed, and from nobody else") func clients() {
    var settings = ControlAPI.Settings()
    settings.isProxy = { $0.hasPrefix("10.") }
    var request = HTTPRequest(
      target: "/", headers: ["X-Forwarded-For": "1.1.1.1, 2.2.2.2, 10.0.0.2", "X-Forwarded-Proto": "https"])
    request.peer = "10.0.0.1"
    #expect(Client(request, settings).address == "2.2.2.2" && Client(request, settings).isSecure)
    request.peer = "3.3.3.3"
    #expect(Client(request, settings).address == "3.3.3.3" && !Client(request, settings).isSecure)
    settings.publicOrigin = "https://films.example"
    #expect(Client(request, settings).isSecure)
  }

  @Test("an address counts without its port, and of IPv6 the network of 64 bits, however it is written")
  func networks() {
    var settings = ControlAPI.Settings()
    settings.isProxy = { $0.hasPrefix("10.") }
    func network(_ peer: String, _ forwarded: String? = nil) -> String {
      var request = HTTPRequest(target: "/", headers: forwarded.map { ["X-Forwarded-For": $0] } ?? [:])
      request.peer = peer
      return Client(request, settings).network
    }
    let same = ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::1", "2001:db8:1:2::", "2001:0DB8:1:2:0:0:0:7"]
    #expect(Set(same.map { network($0) }).count == 1)
    let others = ["2001:db8:1:3::1", "2001:db8::1", "::1", "::2:0:0:0:0", "::ffff:9.9.9.9", "9.9.9.9", "8.8.8.8", ""]
    #expect(Set((others + same).map { network($0) }).count == 8)
    for hop in ["9.9.9.9", "9.9.9.9:1", " 9.9.9.9:65535", "::ffff:9.9.9.9", "[::ffff:9.9.9.9]:7"] {
      #expect(network("10.0.0.1", "1.1.1.1, \(hop), 10.0.0.2:80") == "9.9.9.9", "\(hop)")
    }
    for hop in ["2001:db8:1:2::9", "[2001:db8:1:2::9]", "[2001:db8:1:2::8]:443"] {
      #expect(network("10.0.0.1", hop) == network(same[0]), "\(hop)")
    }
    for hop in ["unknown", "_hidden", "", "9.9.9.9.9", "[", "1.1.1.1, unknown"] {
      #expect(network("10.0.0.1", hop) == "10.0.0.1", "\(hop)")
    }
  }

  @Test("the tag of a task tells its sequence, whatever its coding") func tags() {
    let tag = EntityTag.of([1], sequence: 7)
    #expect(EntityTag.matches(tag, sequence: 7) && !EntityTag.matches(tag, sequence: 8))
    #expect(EntityTag.matches(EntityTag.compressed(tag), sequence: 7) && EntityTag.matches("\"7\"", sequence: 7))
    #expect(EntityTag.matches(nil, sequence: 7) && EntityTag.matches("*", sequence: 7))
    #expect(!EntityTag.matches("W/\"7-0\"", sequence: 7) && !EntityTag.matches("\"70-1\"", sequence: 7))
    for field in [tag, "W/\(tag)", EntityTag.compressed(tag), "\"x\", \(tag)", "*"] {
      #expect(EntityTag.isKnown(tag, in: field), "\(field)")
    }
    #expect(!EntityTag.isKnown(tag, in: "\"x\"") && !EntityTag.isKnown(tag, in: nil))
  }

  @Test(
    "gzip is sent only to those who read it",
    arguments: [
      ("gzip", true), ("GZIP;q=0.5", true), ("br, gzip", true), ("*", true), ("gzip;q=0", false), ("br", false),
      ("*;q=0", false), ("gzip;q=0, *", false), ("identity", false), ("", false),
    ]) func codings(field: String, isAccepted: Bool)
  {
    #expect(Compressor.isAccepted(field) == isAccepted)
  }
}
