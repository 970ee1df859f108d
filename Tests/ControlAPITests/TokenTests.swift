import ControlAPI
import HTTPServer
import ReelhaulClient
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing

@Suite struct TokenTests {
  private static var required: ControlAPI.Settings {
    var settings = ControlAPI.Settings()
    settings.requiresTokens = true
    return settings
  }

  private static let task = #"{"kind": "noop", "source": "noop://a/"}"#

  @Test("without a token there is the page and the probes, and no data") func closed() async throws {
    try await APIBench.run(Self.required) { bench in
      let id = try await bench.add(to: "default")
      for target in ["/", "/assets/main.js", "/healthz", "/readyz", "/openapi.json", "/robots.txt"] {
        #expect(await bench.ask("GET", target).status == 200, "\(target)")
      }
      for (method, target) in [
        ("GET", "/v1/tasks"), ("GET", "/v1/tasks/\(id)"), ("GET", "/v1/overview"), ("GET", "/v1/workers"),
        ("GET", "/v1/limits"), ("GET", "/v1/stream"), ("GET", "/metrics"), ("GET", "/v1/session"),
        ("POST", "/v1/tasks"), ("POST", "/v1/tasks/\(id)/actions/cancel"),
      ] {
        for token in ["", "rhl_", "rhl_\(String(repeating: "a", count: 43))", "Basic x"] {
          let headers = token.isEmpty ? [:] : ["Authorization": "Bearer \(token)"]
          let peer = "10.0.0.\(Int.random(in: 1...250)).\(target.utf8.count).\(method)"
          let answer = await bench.ask(method, target, method == "POST" ? Self.task : "", headers, from: peer)
          #expect(answer.status == 401 || answer.status == 429, "\(method) \(target) \(token): \(answer)")
          #expect(!answer.body.contains("\(id)") || target.contains("\(id)"))
        }
      }
      #expect(await bench.ask("GET", "/v1/tasks").headers["www-authenticate"] == "Bearer realm=\"reelhaul\"")
      #expect(bench.sent.withLock { $0.isEmpty })
      let head = HTTPRequest(
        method: "POST", target: "/v1/tasks", headers: ["Host": "a", "Content-Type": "application/json"])
      guard case .refused(let response) = await bench.api.admit(head) else {
        Issue.record("the body is let in")
        return
      }
      #expect(response.status == 401)
    }
  }

  @Test("each scope may do its part, and no more") func scopes() async throws {
    try await APIBench.run(Self.required) { bench in
      let id = try await bench.add(to: "default")
      for (scope, submits) in [(TokenScope.read, false), (.write, true), (.admin, true)] {
        let token = try await bench.token(scope)
        for target in ["/v1/tasks", "/v1/tasks/\(id)", "/v1/overview", "/v1/workers", "/v1/limits", "/metrics"] {
          #expect(await bench.ask(as: token, "GET", target).status == 200, "\(scope) \(target)")
        }
        let status = submits ? 202 : 403
        #expect(await bench.ask(as: token, "POST", "/v1/tasks", Self.task).status == status)
        #expect(
          await bench.ask(as: token, "POST", "/v1/tasks/\(id)/actions/prioritize", #"{"priority": 1}"#).status == status
        )
      }
    }
  }

  @Test("a token of one queue sees and touches the tasks of that queue alone") func queues() async throws {
    try await APIBench.run(Self.required) { bench in
      let (mine, other) = (try await bench.add(to: "mine"), try await bench.add(to: "other"))
      let token = try await bench.token(.admin, queues: ["mine"])
      let list = await bench.ask(as: token, "GET", "/v1/tasks")
      #expect(list.body.contains("\(mine)") && !list.body.contains("\(other)"))
      #expect(
        await bench.ask(as: token, "GET", "/v1/tasks?queue=other").body.hasPrefix(#"{"tasks":[],"hasMore":false"#))
      #expect(await bench.ask(as: token, "GET", "/v1/tasks/\(mine)").status == 200)
      let hidden = await bench.ask(as: token, "GET", "/v1/tasks/\(other)")
      let absent = await bench.ask(as: token, "GET", "/v1/tasks/\(UniqueID.make())")
      #expect(hidden.status == 404 && absent.status == 404)
      #expect(await bench.ask(as: token, "GET", "/v1/overview").body.contains(#""queued":1"#))
      for target in ["/v1/workers", "/v1/limits", "/metrics"] {
        #expect(await bench.ask(as: token, "GET", target).status == 403, "\(target)")
      }
      #expect(await bench.ask(as: token, "POST", "/v1/tasks/\(other)/actions/cancel", "{}").status == 404)
      #expect(await bench.ask(as: token, "POST", "/v1/tasks/\(other)/cancel", "{}").status == 404)
      #expect(await bench.ask(as: token, "POST", "/v1/tasks/\(mine)/actions/cancel", "{}").status == 202)
      let foreign = #"{"kind": "noop", "source": "noop://a/", "queue": "other"}"#
      #expect(await bench.ask(as: token, "POST", "/v1/tasks", Self.task).status == 403)
      #expect(await bench.ask(as: token, "POST", "/v1/tasks", foreign).status == 403)
      let taken = #"{"id": "\#(other)", "kind": "noop", "source": "noop://a/", "queue": "mine"}"#
      #expect(await bench.ask(as: token, "POST", "/v1/tasks", taken).status == 409)
      let after = #"{"kind": "noop", "source": "noop://a/", "queue": "mine", "after": ["\#(other)"]}"#
      #expect(await bench.ask(as: token, "POST", "/v1/tasks", after).status == 409)
      let new = UniqueID.make()
      let lines = """
        \(foreign)
        {"command": "cancel", "taskId": "\(other)"}
        {"kind": "noop", "source": "noop://a/", "queue": "mine"}
        {"id": "\(new)", "kind": "noop", "source": "noop://a/", "queue": "mine"}
        {"command": "cancel", "taskId": "\(new)"}
        """
      let many = await bench.ask(
        "POST", "/v1/tasks", lines, ["Authorization": "Bearer \(token)"], type: "application/x-ndjson")
      #expect(many.body.contains(#""line":1,"code""#) && many.body.contains(#""line":2,"code""#))
      #expect(many.status == 202)
      for line in 3...5 { #expect(many.body.contains(#""line":\#(line),"id""#)) }
      let forged = "{\"command\": \"pause\", \"taskId\": \"\(mine)\", \"actor\": \"somebody\"}"
      _ = await bench.ask(
        "POST", "/v1/tasks", forged, ["Authorization": "Bearer \(token)"], type: "application/x-ndjson")
      let actors = bench.sent.withLock { $0 }.compactMap { command -> String? in
        if case .control(let control) = command { control.actor } else { nil }
      }
      #expect(actors.count == 3 && actors.allSatisfy { $0.hasPrefix("admin ") })
      let (untouched, canceled) = (try await bench.store.task(other), try await bench.store.task(mine))
      #expect(untouched?.state == .queued && canceled?.state == .canceled)
    }
  }

  @Test("commands of a token whose name workers refuse as an actor are sent with a name that they take")
  func names() async throws {
    try await APIBench.run(Self.required) { bench in
      let id = try await bench.add(to: "default")
      for (name, actor) in [("ann 🎬", "ann 🎬"), ("a\u{85}b", "token")] {
        let token = try await bench.token(.write, name: name)
        #expect(await bench.ask(as: token, "POST", "/v1/tasks/\(id)/actions/pause", "{}").status == 202)
        let last = bench.sent.withLock { $0.last }
        guard case .control(let control) = last else {
          Issue.record("\(name): no command was sent")
          return
        }
        #expect(control.actor == actor)
      }
    }
  }

  @Test("a revoked token and one that has expired stop, with their sessions and open streams")
  func revoked() async throws {
    try await APIBench.run(Self.required) { bench in
      let (kept, name) = (try await bench.token(.read), "leaving \(UniqueID.make())")
      let token = try await bench.token(.read, name: name)
      let signIn = await bench.ask("POST", "/v1/session", #"{"token": "\#(token)"}"#)
      let cookie = try #require(signIn.headers["set-cookie"]?.prefix { $0 != ";" })
      #expect(await bench.ask("GET", "/v1/tasks", "", ["Cookie": "\(cookie)"]).status == 200)
      let brief = try await bench.token(.read, lifetime: .seconds(10))
      #expect(await bench.ask(as: brief, "GET", "/v1/tasks").status == 200)
      let server = HTTPServer(loop: bench.loop, settings: .init(), handler: bench.api)
      let client = try RawClient(port: try await server.start())
      client.send("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\n\r\n")
      #expect(client.receive { $0.contains("event: tasks\n") }.contains("HTTP/1.1 200"))
      #expect(try await bench.store.revokeToken(name) != nil)
      // The server ends the stream; otherwise the client gives up after a time.
      _ = client.receive()
      let open = try await bench.loop.task { server.connectionCount }.value
      #expect(open == 0)
      #expect(await bench.ask(as: token, "GET", "/v1/tasks").status == 401)
      #expect(await bench.ask("GET", "/v1/tasks", "", ["Cookie": "\(cookie)"]).status == 401)
      try await eventually("the brief one has ended", every: .milliseconds(20)) {
        await bench.ask(as: brief, "GET", "/v1/tasks").status == 401
      }
      #expect(await bench.ask(as: kept, "GET", "/v1/tasks").status == 200)
      await server.stop(within: .zero)
    }
  }

  @Test("where no token is needed, a stream goes on although its reader shows one") func needless() async throws {
    try await APIBench.run { bench in
      let token = try await bench.token(.read)
      let server = HTTPServer(loop: bench.loop, settings: .init(), handler: bench.api)
      let client = try RawClient(port: try await server.start())
      client.send("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\n\r\n")
      #expect(client.receive { $0.contains("event: tasks\n") }.contains("HTTP/1.1 200"))
      // By then the token would have been asked for twice.
      try await Task.sleep(for: .seconds(5))
      let id = UniqueID.make()
      #expect(await bench.submit(id) == 202)
      #expect(client.receive { $0.contains("\(id)") }.contains("\(id)"))
      await server.stop(within: .zero)
    }
  }

  @Test("a browser signs in with a token and gets a cookie that no script and no other site can use, and signs out")
  func sessions() async throws {
    var settings = Self.required
    settings.prefix = "/reelhaul"
    settings.publicOrigin = "https://films.example"
    try await APIBench.run(settings) { bench in
      let token = try await bench.token(.write, queues: ["q"], name: "ann")
      let wrong = await bench.ask("POST", "/v1/session", #"{"token": "rhl_x"}"#)
      #expect(wrong.status == 401 && wrong.headers["set-cookie"] == nil)
      let answer = await bench.ask(
        "POST", "/reelhaul/v1/session", #"{"token": "\#(token)"}"#, ["Origin": "https://films.example"])
      #expect(answer.status == 200 && answer.body.contains(#""name":"ann","scope":"write","queues":["q"]"#))
      let field = try #require(answer.headers["set-cookie"])
      for word in ["; Max-Age=604800;", "; HttpOnly", "; SameSite=Strict", "; Secure", "; Path=/reelhaul;"] {
        #expect(field.contains(word), "\(field)")
      }
      let cookie = String(field.prefix { $0 != ";" })
      #expect(!cookie.contains(token.dropFirst(4)) && answer.headers["cache-control"] == "no-store")
      // Another host of the domain may have set the other one.
      let name = cookie.prefix { $0 != "=" }
      for several in ["\(name)=rhl_x; \(cookie)", "\(cookie); \(name)=rhl_x"] {
        #expect(await bench.ask("GET", "/v1/session", "", ["Cookie": several]).status == 401)
      }
      let who = await bench.ask("GET", "/v1/session", "", ["Cookie": "a=b; \(cookie)"])
      #expect(who.status == 200 && who.body.contains(#""tokensRequired":true"#))
      let task = #"{"kind": "noop", "source": "noop://a/", "queue": "q"}"#
      for headers in [["Origin": "https://evil.example"], ["Sec-Fetch-Site": "cross-site"]] {
        let forged = headers.merging(["Cookie": cookie]) { $1 }
        #expect(await bench.ask("POST", "/v1/tasks", task, forged).status == 403)
      }
      let own = ["Cookie": cookie, "Origin": "https://films.example", "Sec-Fetch-Site": "same-origin"]
      #expect(await bench.ask("POST", "/v1/tasks", task, own).status == 202)
      // A session is no token, and a token no session.
      let secret = String(cookie.drop { $0 != "=" }.dropFirst())
      #expect(await bench.ask(as: secret, "GET", "/v1/tasks").status == 401)
      #expect(await bench.ask("GET", "/v1/tasks", "", ["Cookie": "\(name)=\(token)"]).status == 401)
      let out = await bench.ask("DELETE", "/v1/session", "", ["Cookie": cookie])
      #expect(out.status == 204 && out.headers["set-cookie"]?.contains("Max-Age=0") == true)
      #expect(await bench.ask("GET", "/v1/session", "", ["Cookie": cookie]).status == 401)
      #expect(await bench.ask(as: token, "GET", "/v1/session").status == 200)
    }
  }

  @Test("sessions at two ports of a host do not meet") func ports() async throws {
    try await APIBench.run(Self.required) { bench in
      let token = try await bench.token(.read)
      var cookies: [String] = []
      let hosts = ["127.0.0.1:8080", "127.0.0.1:8081", "127.0.0.1", "[::1]", "[::1]:8080"]
      for host in hosts {
        let answer = await bench.ask("POST", "/v1/session", #"{"token": "\#(token)"}"#, ["Host": host])
        cookies.append(String(try #require(answer.headers["set-cookie"]).prefix { $0 != ";" }))
      }
      let names = cookies.map { $0.prefix { $0 != "=" } }
      #expect(names == ["_8080", "_8081", "", "", "_8080"].map { "reelhaul_session\($0)" })
      for (host, cookie) in zip(hosts, cookies) {
        let own = ["Host": host, "Cookie": "reelhaul_session_9=x; \(cookie); a=b"]
        #expect(await bench.ask("GET", "/v1/tasks", "", own).status == 200)
        let other = await bench.ask("GET", "/v1/tasks", "", ["Host": "127.0.0.1:9", "Cookie": cookie])
        #expect(other.status == 401)
      }
    }
  }

  @Test("over HTTPS and without a prefix, browsers refuse the session's cookie from other hosts of the domain")
  func ownCookie() async throws {
    var settings = Self.required
    settings.publicOrigin = "https://films.example:8443"
    try await APIBench.run(settings) { bench in
      let token = try await bench.token(.read)
      let answer = await bench.ask("POST", "/v1/session", #"{"token": "\#(token)"}"#)
      let field = try #require(answer.headers["set-cookie"])
      #expect(
        field.hasPrefix("__Host-reelhaul_session_8443=") && field.hasSuffix("; Secure") && field.contains("; Path=/;"))
      let cookie = field.prefix { $0 != ";" }
      for name in ["reelhaul_session", "reelhaul_session_8443"] {
        let beside = ["Cookie": "\(name)=rhl_x; \(cookie)"]
        #expect(await bench.ask("GET", "/v1/session", "", beside).status == 200)
      }
    }
  }

  @Test("nobody can take the ids of another token's keys, which its sessions share and a token of its name does not")
  func keys() async throws {
    try await APIBench.run(Self.required) { bench in
      let (ci, other) = (try await bench.token(.write, name: "ci"), try await bench.token(.write, queues: ["q"]))
      // What follows from all that others know.
      let taken = UniqueID(derivedFrom: "reelhaul idempotency ci\u{0}order-2 line 1")
      let task = #"{"id": "\#(taken)", "kind": "noop", "source": "noop://a/", "queue": "q"}"#
      #expect(await bench.ask(as: other, "POST", "/v1/tasks", task).status == 202)
      func submit(_ headers: [String: String]) async -> (status: Int, body: String, headers: HTTPFields) {
        let key = headers.merging(["Idempotency-Key": "order-2"]) { $1 }
        return await bench.ask("POST", "/v1/tasks", Self.task, key, type: "application/x-ndjson")
      }
      let first = await submit(["Authorization": "Bearer \(ci)"])
      #expect(first.status == 202 && !first.body.contains("\(taken)"))
      let signedIn = await bench.ask("POST", "/v1/session", #"{"token": "\#(ci)"}"#)
      let cookie = String(try #require(signedIn.headers["set-cookie"]).prefix { $0 != ";" })
      #expect(await submit(["Cookie": cookie, "Sec-Fetch-Site": "same-origin"]).body == first.body)
      _ = try await bench.store.revokeToken("ci")
      let successor = try await bench.token(.write, name: "ci")
      let next = await submit(["Authorization": "Bearer \(successor)"])
      #expect(next.status == 202 && next.body != first.body)
      #expect(try await bench.store.counts() == [.queued: 3])
    }
  }

  @Test("whoever shows no token may not fill the memory that bodies share") func bodies() async throws {
    try await APIBench.run(Self.required) { bench in
      func limit(_ target: String, _ headers: HTTPFields = [:]) async -> Int? {
        var head = HTTPRequest(method: "POST", target: target, headers: headers)
        for (name, value) in ["Host": "localhost", "Content-Type": "application/json", "Content-Length": "9"] {
          head.headers[name] = value
        }
        if case .body(let limit) = await bench.api.admit(head) { return limit }
        return nil
      }
      let token = try await bench.token(.write)
      // A text for each of the connections that a server may have.
      let least = try #require(await limit("/v1/session"))
      #expect(1024...4096 ~= least && least * HTTPServer.Settings().connections <= HTTPServer.Settings().bodies)
      #expect(await limit("/v1/tasks") == nil)
      #expect(await limit("/v1/tasks", ["Authorization": "Bearer \(token)"]) == 4 << 20)
    }
  }

  @Test("wrong tokens from one address are soon refused unread, and do not lock out who holds a right one")
  func guessing() async throws {
    try await APIBench.run(Self.required) { bench in
      let token = try await bench.token(.read)
      #expect(await bench.ask(as: token, "GET", "/v1/tasks").status == 200)
      var statuses: [Int] = []
      for _ in 0..<20 { statuses.append(await bench.ask(as: TokenSecret().text, "GET", "/v1/tasks").status) }
      #expect(statuses.prefix(10).allSatisfy { $0 == 401 } && statuses.last == 429)
      let limited = await bench.ask("POST", "/v1/session", #"{"token": "\#(TokenSecret().text)"}"#)
      #expect(limited.status == 429 && (Int(limited.headers["retry-after"] ?? "") ?? 0) > 0)
      #expect(await bench.ask(as: token, "GET", "/v1/tasks").status == 200)
      let elsewhere = await bench.ask("GET", "/v1/tasks", "", ["Authorization": "Bearer x"], from: "10.9.9.9")
      #expect(elsewhere.status == 401)
    }
  }

  @Test("a token may send so many requests, and another one is not slowed by it") func rates() async throws {
    var settings = Self.required
    settings.requestsPerSecond = 1
    try await APIBench.run(settings) { bench in
      let (busy, calm) = (try await bench.token(.read), try await bench.token(.read))
      var last = 200
      for _ in 0..<20 { last = await bench.ask(as: busy, "GET", "/v1/session").status }
      #expect(last == 429)
      let answer = await bench.ask(as: busy, "GET", "/v1/session")
      #expect(answer.status == 429 && answer.headers["retry-after"] != nil)
      // Its sessions have no share of their own.
      let signIn = await bench.ask("POST", "/v1/session", #"{"token": "\#(busy)"}"#)
      let cookie = String(try #require(signIn.headers["set-cookie"]).prefix { $0 != ";" })
      for _ in 0..<20 { last = await bench.ask("GET", "/v1/session", "", ["Cookie": cookie]).status }
      #expect(last == 429)
      #expect(await bench.ask(as: calm, "GET", "/v1/session").status == 200)
    }
  }

  @Test("probes, the page and sign-ins are not counted for each other, with tokens and without") func uncounted()
    async throws
  {
    for requiresTokens in [true, false] {
      var settings = Self.required
      settings.requiresTokens = requiresTokens
      settings.hasOpenMetrics = true
      settings.requestsPerSecond = 1
      try await APIBench.run(settings) { bench in
        let token = try await bench.token(.read)
        for _ in 0..<10 {
          for target in ["/healthz", "/"] { #expect(await bench.ask("GET", target).status == 200) }
          let signIn = await bench.ask("POST", "/v1/session", #"{"token": "\#(token)"}"#)
          #expect(signIn.status == 200)
          if requiresTokens { #expect(await bench.ask("GET", "/metrics").status == 200) }
        }
        var last = 200
        for _ in 0..<20 { last = await bench.ask(as: token, "GET", "/v1/tasks").status }
        #expect(last == 429)
      }
    }
  }

  @Test("names of tokens are unique while they hold, secrets are not stored, and sessions are bounded")
  func store() async throws {
    try await APIBench.run { bench in
      let secret = TokenSecret()
      let new = NewToken(name: "a", scope: .read, queues: ["q"], lifetime: .seconds(3600), hash: secret.hash)
      let made = try #require(try await bench.store.createToken(new))
      #expect(made.queues == ["q"] && !made.isSession && made.expiresAt != nil)
      let again = try await bench.store.createToken(NewToken(name: "a", scope: .admin, hash: TokenSecret().hash))
      #expect(again == nil)
      let found = try await bench.store.token(hash: secret.hash)
      #expect(found?.id == made.id && found?.lastUsedAt != nil)
      let first = TokenSecret()
      _ = try await bench.store.createSession(of: made.id, hash: first.hash, lifetime: .seconds(86_400))
      for _ in 0..<APIToken.mostSessions {
        let session = try await bench.store.createSession(
          of: made.id, hash: TokenSecret().hash, lifetime: .seconds(86_400))
        // It ends with its token.
        #expect(session?.isSession == true && session?.expiresAt == made.expiresAt)
      }
      let oldest = try await bench.store.token(hash: first.hash)
      let listed = try await bench.store.tokens()
      #expect(oldest == nil && listed.map(\.name) == ["a"])
      #expect(try await bench.store.revokeToken("\(made.id)")?.name == "a")
      #expect(try await bench.store.revokeToken("a") == nil)
      let rows = try await bench.pool.query("select count(*) n from api_token")
      #expect(try rows.only.int64(try rows.columns["n"]) == 0)
      #expect(try await bench.store.createSession(of: made.id, hash: first.hash, lifetime: .seconds(1)) == nil)
    }
  }
}
