import ReelhaulCurl
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What a server of plain HTTP may do to an upload.
@Suite struct UploadPutTests {
  /// Large enough that 100-continue is waited for.
  static let size = 3_000_001

  private static let all = OriginContent(seed: 7).bytes(0..<Int64(size))
  static func bytes() -> [UInt8] { all }

  static func spec(_ harness: UploadHarness, _ change: (inout TaskSpec) -> Void = { _ in }) -> TaskSpec {
    var spec = TaskSpec(
      id: .random(), kind: .upload, source: UploadHarness.source, destination: harness.store.url("/put/film.mp4"),
      ifExists: .replace, headers: [HeaderField(name: "X-Secret", value: "a secret")])
    change(&spec)
    return spec
  }

  /// An upload to a server with these faults.
  struct Upload {
    let options: StoreOptions
    let change: (inout TaskSpec) -> Void
    let script: StoreServer.Script

    func run(_ check: (UploadHarness, UploadOutcome) async throws -> Void) async throws {
      try await UploadHarness.run(options: options) { harness in
        try harness.put(UploadPutTests.bytes())
        harness.store.script(script)
        let outcome = await harness.run(UploadPutTests.spec(harness, change))
        try await check(harness, outcome)
      }
    }
  }

  func upload(
    options: StoreOptions = StoreOptions(), _ change: @escaping (inout TaskSpec) -> Void = { _ in },
    script: @escaping StoreServer.Script
  ) -> Upload {
    Upload(options: options, change: change, script: script)
  }

  static func expectThere(
    _ harness: UploadHarness, key: String = "put/film.mp4", at location: SourceLocation = #_sourceLocation
  ) {
    // A failure must not show megabytes.
    let isThere =
      harness.store.objects.count == 1 && harness.store.objects[key]?.bytes == bytes()
    #expect(isThere, sourceLocation: location)
  }

  @Test("an empty file that waits for a connection is not sent once the task is lost") func lostInLine() async throws {
    try await UploadHarness.run(hostConnections: 1) { harness in
      try harness.put([])
      let gate = OriginGate()
      harness.store.script { $0.path == "/put/other.mp4" ? [.holdAnswer(gate)] : [] }
      let other = Task {
        await harness.run(Self.spec(harness) { $0.destination = harness.store.url("/put/other.mp4") })
      }
      await gate.reached()
      let ledger = UploadRecordingLedger()
      let run = Task { await harness.run(Self.spec(harness), ledger: ledger) }
      try await Task.sleep(for: .milliseconds(300))
      ledger.revoke()
      gate.open()
      #expect(await run.value == .stopped)
      #expect(await other.value.failure == nil)
      #expect(harness.store.exchanges(.put).count == 1)
    }
  }

  @Test(
    "copies within a server, and those that cross, end however few connections there are", .timeLimit(.minutes(10)),
    arguments: [1, 3], ["http", "tus"])
  func copiesWithinAServer(connections: Int, destination: String) async throws {
    try await UploadHarness.run(hostConnections: connections) { harness in
      harness.store.put("put/film.mp4", bytes: Self.bytes())
      let hosts = ["127.0.0.1", "localhost"]
      let outcomes = await withTaskGroup { group in
        for number in 0..<12 {
          // Within one, from each to the other, and within the other.
          let (from, to) = (hosts[number / 2 % 2], hosts[number % 2])
          group.addTask {
            await harness.run(
              Self.spec(harness) {
                $0.kind = .copy
                $0.headers = []
                $0.source = harness.store.url("/put/film.mp4", host: from)
                $0.destination = harness.store.url("/put/\(number).mp4", host: to)
                guard destination == "tus" else { return }
                $0.destination = "tus+\(harness.store.url("/tus", host: to))"
                $0.parameters = Array(#"{"checksum":"none"}"#.utf8)
              })
          }
        }
        return await group.reduce(into: [UploadOutcome]()) { $0.append($1) }
      }
      for outcome in outcomes { #expect(outcome.failure == nil, "\(outcome)") }
      let whole = harness.store.objects.values.filter { $0.bytes == Self.bytes() }.count
      #expect(whole == 13)
    }
  }

  @Test("a URL that is always refused does not take the host from uploads", arguments: [100_000, 3_000_001])
  func refusedBesideUploads(size: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Array(Self.bytes().prefix(size)))
      let gates = (0..<3).map { _ in OriginGate() }
      harness.store.script { request in
        guard request.operation == .put, let number = request.path.last?.wholeNumberValue else { return [] }
        return [.holdBody(after: 50_000, gates[number])]
      }
      var uploads: [Task<UploadOutcome, Never>] = []
      for number in 0..<3 {
        let spec = Self.spec(harness) { $0.destination = harness.store.url("/put/\(number)") }
        uploads.append(Task { await harness.run(spec) })
        try await eventually("it is sent") { harness.store.exchanges(.put).count == number + 1 }
      }
      // The host takes so much longer with these that it works on them.
      try await Task.sleep(for: .milliseconds(200))
      gates[2].open()
      #expect(await uploads[2].value.failure == nil)
      let (hosts, server) = (harness.roots.hosts, try #require(CurlURL(harness.store.url("/bad"))).server)
      #expect(hosts.take(server, for: "default"))
      let isSurplus = hosts.giveBack(server, for: "default", after: .refused, of: hosts.sent(to: server))
      #expect(!isSurplus, "the host took three a moment ago")
      for gate in gates { gate.open() }
      for upload in uploads { #expect(await upload.value.failure == nil) }
      #expect(hosts.used == 0)
    }
  }

  @Test("a destination that takes nothing does not keep the source's files from others", .timeLimit(.minutes(10)))
  func heldForDestinations() async throws {
    let origin = try OriginServer()
    defer { origin.close() }
    origin.serve("/film.mp4", OriginFile(seed: 1, size: 60 << 20).with { $0.acceptsRanges = false })
    let source = origin.url("/film.mp4")
    try await UploadHarness.run { harness in
      let held = harness.roots.remote.held
      let gate = OriginGate()
      harness.store.script { $0.path.contains("slow") && $0.operation == .put ? [.holdBody(after: 0, gate)] : [] }
      func copy(to host: String, _ path: String) async -> UploadOutcome {
        await harness.run(
          Self.spec(harness) {
            ($0.kind, $0.source, $0.headers) = (.copy, source, [])
            $0.destination = harness.store.url(path, host: host)
          })
      }
      let slow = (0..<3).map { number in Task { await copy(to: "127.0.0.1", "/put/slow\(number)") } }
      try await eventually("its host has what it may have") { held.waiting == 1 && held.held == 120 << 20 }
      let outcome = await copy(to: "localhost", "/put/film.mp4")
      #expect(outcome.failure == nil, "\(outcome)")
      gate.open()
      for task in slow { #expect(await task.value.failure == nil) }
    }
  }

  @Test("a server that refuses or ignores Expect gets the file without it") func expect() async throws {
    try await upload(script: { $0["expect"] != nil ? [.status(417)] : [] }).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.put).first?.request["expect"] != nil, "it was asked")
      Self.expectThere(harness)
    }
    var options = StoreOptions()
    options.honoursExpect = false
    try await upload(options: options, script: { _ in [] }).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
  }

  @Test("only a large file waits until the server has not refused it", arguments: [0, 256, 257])
  func expectsForLargeFiles(kibibytes: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Array(Self.bytes().prefix(kibibytes << 10)))
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.put).map { $0.request["expect"] != nil } == [kibibytes > 256])
    }
  }

  /// Lost answers to a PUT, and answers of gateways which do not know what became of it.
  private static let lost =
    [StoreFault.closeAfterApplying] + [408, 500, 502, 503, 504].map(StoreFault.statusAfterApplying)

  @Test(
    "a file whose answer is lost is not in its own way, also where a redirect leads", arguments: lost,
    [0, 100_000, 3_000_001])
  func lostAnswer(fault: StoreFault, size: Int) async throws {
    // Where the server does not answer Expect, libcurl itself repeats a request on a connection that was used before.
    for (honoursExpect, isRedirected) in [(true, false), (false, false), (true, true)] {
      var options = StoreOptions()
      options.honoursExpect = honoursExpect
      try await UploadHarness.run(options: options) { harness in
        try harness.put(Array(Self.bytes().prefix(size)))
        let key = isRedirected ? "put/other.mp4" : "put/film.mp4"
        harness.store.script { request in
          if request.path != "/\(key)" { return [.redirect(to: "/\(key)")] }
          return request.operation == .put && request.ordinal <= (isRedirected ? 2 : 1) ? [fault] : []
        }
        let outcome = await harness.run(Self.spec(harness) { $0.ifExists = .fail })
        #expect(
          outcome.failure == nil && outcome.object?.verified == .sha256, "\(honoursExpect) \(isRedirected): \(outcome)")
        #expect(harness.store.objects.count == 1 && harness.store.objects[key]?.bytes?.count == size)
      }
    }
  }

  @Test("a success that does not say that the file is stored is none", arguments: [206, 207, 226])
  func otherSuccess(status: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { $0.operation == .put ? [.status(status), .noContinue] : [] }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure?.code == .badResponse && outcome.failure?.class == .retry, "\(outcome)")
    }
  }

  @Test("a server that refuses a file after it has read it counts as an attempt", arguments: [423, 507])
  func refusedAfterTheBody(status: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { $0.operation == .put ? [.status(status), .noContinue] : [] }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure?.code == .http(status) && outcome.failure?.class == .retry, "\(outcome)")
    }
  }

  @Test("a HEAD that tells a wrong length does not undo an upload whose bytes are there", arguments: ["0", "17"])
  func wrongLength(told: String) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { $0.operation == .head ? [.header("Content-Length", told)] : [] }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure == nil && outcome.object?.verified != UploadOutput.Verified.none, "\(outcome)")
      #expect(harness.store.exchanges(.put).count == 1)
      Self.expectThere(harness)
    }
  }

  @Test("a file is not another's because the server cannot show it now", arguments: [429, 500, 503])
  func comparesLater(status: Int) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { request in
        guard request.ordinal == 1 else { return [] }
        return request.operation == .put ? [.closeAfterApplying] : request.operation == .get ? [.status(status)] : []
      }
      let outcome = await harness.run(Self.spec(harness) { $0.ifExists = .fail })
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.get).count == 2)
      Self.expectThere(harness)
    }
  }

  @Test("a length that is none is not told of a file that is skipped", arguments: ["-9223372036854775808", "-1", "+5"])
  func noLength(text: String) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.always(.head, .status(204, headers: [("Content-Length", text)]))
      let outcome = await harness.run(Self.spec(harness) { $0.ifExists = .skip })
      guard case .succeeded(let object, let bytes) = outcome else {
        Issue.record("\(outcome)")
        return
      }
      #expect(object.size == nil && bytes == 0, "\(outcome)")
    }
  }

  @Test("a file that comes while another is sent is kept", arguments: [IfExists.fail, .skip])
  func comesMeanwhile(ifExists: IfExists) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let other = Array(Self.bytes().reversed())
      harness.store.script { [store = harness.store] request in
        // As large, so that only its bytes tell it from ours.
        if request.operation == .put { store.put("put/film.mp4", bytes: other) }
        return []
      }
      let outcome = await harness.run(Self.spec(harness) { $0.ifExists = ifExists })
      #expect(outcome.failure?.code == (ifExists == .fail ? .destinationExists : nil), "\(outcome)")
      let isKept = harness.store.objects["put/film.mp4"]?.bytes == other
      #expect(isKept)
    }
  }

  @Test("a refusal that comes before the file is sent costs no bytes", arguments: [401, 403, 411, 413, 415])
  func refusedAtOnce(status: Int) async throws {
    try await upload(script: { $0.operation == .put ? [.status(status)] : [] }).run { harness, outcome in
      #expect(outcome.failure?.code == .http(status) && outcome.failure?.class == .fail, "\(outcome)")
      #expect(harness.store.exchanges(.put).map(\.bodyLength) == [0])
    }
  }

  @Test("a token of a program that the server has refused is not taken from memory for the next attempt")
  func tokenOfProgram() async throws {
    try await UploadHarness.run { harness in
      let path = "\(harness.directory.path)/credentials.json"
      let command = #""command": ["/bin/cat", "\#(path).told"], "hosts": ["127.0.0.1:\#(harness.store.port)"]"#
      try TextFile.write(#"{"web": {\#(command), "allowHTTP": true}}"#, to: path, mode: 0o600)
      let tell: @Sendable (String) throws -> Void = { token in
        try TextFile.write(#"{"bearer": "\#(token)"}"#, to: "\(path).told")
      }
      try tell("first")
      try harness.put([1, 2, 3])
      harness.store.script { request in
        guard request["authorization"] == "Bearer first" else { return [] }
        try? tell("second")
        return [.status(401)]
      }
      let spec = Self.spec(harness) { $0.credential = "web" }
      let first = await harness.run(spec)
      #expect(first.failure?.code == .http(401) && first.failure?.class == .retry, "\(first)")
      #expect(await harness.run(spec).failure == nil)
      #expect(harness.store.exchanges(.put).last?.request["authorization"] == "Bearer second")
    }
  }

  @Test("a refusal in the middle of the file is told, not the broken connection", arguments: [403, 413])
  func refusedInTheMiddle(status: Int) async throws {
    var options = StoreOptions()
    options.honoursExpect = false
    try await upload(options: options, script: { $0.operation == .put ? [.status(status), .noContinue] : [] }).run {
      _, outcome in
      #expect(outcome.failure?.code == .http(status) && outcome.failure?.class == .fail, "\(outcome)")
    }
  }

  @Test("a redirect that keeps the method is followed with the whole file", arguments: [307, 308])
  func redirect(status: Int) async throws {
    try await upload(
      script: { request in
        request.path == "/put/film.mp4" && request.operation == .put
          ? [.redirect(to: "/put/other.mp4", status: status)] : []
      }
    ).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(outcome.object?.verified == .md5)
      #expect(harness.store.exchanges(.put).last?.request["x-secret"] == "a secret")
      Self.expectThere(harness, key: "put/other.mp4")
    }
  }

  @Test("another host that a redirect names gets the file, and no header field of the task")
  func redirectElsewhere() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let other = harness.store.url("/put/other.mp4", host: "localhost")
      harness.store.script { $0.path == "/put/film.mp4" && $0.operation == .put ? [.redirect(to: other)] : [] }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      let last = harness.store.exchanges(.put).last
      #expect(last?.request.path == "/put/other.mp4" && last?.request["x-secret"] == nil)
      Self.expectThere(harness, key: "put/other.mp4")
    }
  }

  @Test("header fields are not sent again where another host redirects back to the first one")
  func redirectBack() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let other = harness.store.url("/put/other.mp4", host: "localhost")
      let back = harness.store.url("/put/chosen.mp4")
      harness.store.script { request in
        switch request.path {
        case "/put/film.mp4": [.redirect(to: other)]
        case "/put/other.mp4": [.redirect(to: back)]
        default: []
        }
      }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      let requests = harness.store.exchanges.map(\.request)
      #expect(requests.contains { $0.path == "/put/film.mp4" && $0["x-secret"] != nil })
      #expect(requests.contains { $0.path == "/put/chosen.mp4" })
      #expect(requests.allSatisfy { $0.path == "/put/film.mp4" || $0["x-secret"] == nil })
      Self.expectThere(harness, key: "put/chosen.mp4")
    }
  }

  @Test("a file at the place that a redirect leads to is kept", arguments: [true, false])
  func redirectToExisting(alsoOfHead: Bool) async throws {
    for ifExists in [IfExists.fail, .replace] {
      try await UploadHarness.run { harness in
        let (old, new) = (Array(Self.bytes().reversed()), Self.bytes())
        try harness.put(new)
        harness.store.put("put/other.mp4", bytes: old)
        harness.store.script { request in
          let isRedirected = request.operation == .put || request.operation == .head && alsoOfHead
          return request.path == "/put/film.mp4" && isRedirected ? [.redirect(to: "/put/other.mp4", status: 307)] : []
        }
        var spec = Self.spec(harness)
        spec.ifExists = ifExists
        let outcome = await harness.run(spec)
        #expect(outcome.failure?.code == (ifExists == .fail ? .destinationExists : nil), "\(outcome)")
        #expect(harness.store.objects["put/other.mp4"]?.bytes == (ifExists == .fail ? old : new))
      }
    }
  }

  @Test("a file at the place that a redirect leads to is kept by a request that comes again", arguments: [502, 503])
  func redirectToExistingLater(status: Int) async throws {
    for ifExists in [IfExists.fail, .skip] {
      try await UploadHarness.run { harness in
        try harness.put(Array(Self.bytes().prefix(100_000)))
        harness.store.put("put/other.mp4", bytes: [1, 2, 3])
        harness.store.script { request in
          guard request.path == "/put/film.mp4" else { return [.ignoreIfNoneMatch] }
          return request.operation != .put
            ? [.status(404)] : [request.ordinal == 1 ? .status(status) : .redirect(to: "/put/other.mp4"), .noContinue]
        }
        let outcome = await harness.run(Self.spec(harness) { $0.ifExists = ifExists })
        #expect(outcome.failure?.code == .destinationExists, "\(outcome)")
        #expect(harness.store.objects["put/other.mp4"]?.bytes == [1, 2, 3])
      }
    }
  }

  @Test("redirects that change the method, go round or lead to a private network are not followed")
  func redirectRefused() async throws {
    for (fault, code) in [
      (StoreFault.redirect(to: "/put/other.mp4", status: 301), TaskFailure.Code.http(301)),
      (.redirect(to: "/put/other.mp4", status: 303), .http(303)), (.redirect(to: "/put/film.mp4"), .redirectLoop),
      (.redirect(to: "file:///etc/passwd"), .redirectRefused),
      (.redirect(to: "http://169.254.169.254/put"), .addressGivesCredentials),
    ] {
      try await upload(script: { $0.operation == .put ? [fault] : [] }).run { harness, outcome in
        #expect(outcome.failure?.code == code && outcome.failure?.class == .fail, "\(outcome)")
        let objects = harness.store.objects.count
        #expect(objects == 0)
      }
    }
  }

  @Test("a POST gets a connection of its own, so that libcurl does not repeat it") func postedOnce() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let spec = Self.spec(harness) { $0.parameters = Array(#"{"method": "POST"}"#.utf8) }
      // The first leaves a connection behind.
      #expect(await harness.run(spec).failure == nil)
      harness.store.script { $0.operation == .post && $0.ordinal == 2 ? [.closeAfterApplying] : [] }
      let queued = Self.spec(harness) { $0.parameters = spec.parameters }
      _ = await harness.run(queued)
      let second = harness.store.exchanges(.post).dropFirst()
      #expect(second.first?.request.connection != harness.store.exchanges(.post).first?.request.connection)
    }
  }

  @Test(
    "a server that cannot tell now whether a file is there does not get another over it", arguments: [429, 500, 503])
  func lookFails(status: Int) async throws {
    for ifExists in [IfExists.fail, .skip] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        harness.store.put("put/film.mp4", bytes: [1, 2, 3])
        harness.store.script { $0.operation == .head ? [.status(status)] : [.ignoreIfNoneMatch] }
        let outcome = await harness.run(Self.spec(harness) { $0.ifExists = ifExists })
        #expect(outcome.failure?.class == .retry, "\(outcome)")
        #expect(harness.store.objects["put/film.mp4"]?.bytes == [1, 2, 3])
      }
    }
  }

  @Test("a file that must not be replaced is remarked as not guaranteed") func remark() async throws {
    for ifExists in [IfExists.fail, .skip, .replace] {
      try await upload({ $0.ifExists = ifExists }, script: { _ in [.ignoreIfNoneMatch] }).run { harness, outcome in
        #expect((outcome.object?.remark != nil) == (ifExists != .replace), "\(outcome)")
        #expect(harness.store.exchanges(.put).last?.request["if-none-match"] == (ifExists != .replace ? "*" : nil))
      }
    }
  }
}
