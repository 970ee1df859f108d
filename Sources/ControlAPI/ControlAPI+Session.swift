import HTTPServer
import ReelhaulCodec
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TaskStore

extension ControlAPI {
  /// After this, a browser must sign in again.
  private static let sessionLength = Duration.seconds(7 * 86_400)

  private static let session = JSONSchema.named(
    "Session",
    .object([
      .must("name", .text("Who is signed in.")),
      .must("scope", .text(values: TokenScope.allCases.map(\.rawValue))),
      .must("queues", JSONSchema.list(.text(), "The queues that can be reached; null for all.").orNull),
      .must("expiresAt", JSONSchema.time.orNull),
      .must("tokensRequired", .flag("Whether anything needs a token here.")),
    ]))

  static let sessionRoutes = [
    Route(
      method: "GET", path: "/v1/session", summary: "Who the sender is, and what may be reached.", needs: .read,
      isPerQueue: true, gives: session
    ) { api, call in
      var expiry: Timestamp?
      if let secret = Exchange(call.request, api).secret, api.settings.requiresTokens {
        expiry = try await api.authenticator.token(of: secret)?.expiresAt
      }
      return HTTPResponse(type: json, api.session(call.principal, expiry))
    },
    Route(
      method: "POST", path: "/v1/session",
      summary: "Signs a browser in: the answer has a cookie, which stands for the token from then on.", needs: .nothing,
      accepts: [json],
      takes: .named(
        "SignIn", .object([.must("token", .text("Of `reelhaul token create`.", length: 1...200))], isOpen: false)),
      example: #"{"token": "rhl_…"}"#, answers: [200, 401], gives: session
    ) { api, call in try await api.signIn(call) },
    Route(
      method: "DELETE", path: "/v1/session", summary: "Signs a browser out: its session ends, and its cookie goes.",
      needs: .read, isPerQueue: true, answers: [204]
    ) { api, call in
      let exchange = Exchange(call.request, api)
      // Only a session ends; the token that a program shows stays.
      if call.request.headers["authorization"] == nil, let id = call.principal.token, let secret = exchange.secret {
        try await api.store.endSession(id)
        api.authenticator.forget(secret)
      }
      var response = HTTPResponse(204)
      response.headers["Set-Cookie"] = api.cookie("", seconds: 0, exchange)
      return response
    },
  ]

  private func session(_ principal: Principal, _ expiry: Timestamp?) -> [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        json.member("name", principal.actor)
        json.member("scope", principal.scope.rawValue)
        if let queues = principal.queues {
          json.member("queues", queues.sorted())
        } else {
          json.name("queues")
          json.null()
        }
        json.member("expiresAt", orNull: expiry)
        json.member("tokensRequired", settings.requiresTokens)
      }
    }
  }

  private func signIn(_ call: Route.Call) async throws -> HTTPResponse {
    var text: String?
    try call.readBody(["token"]) { reader, _ throws(DecodingFailure) in text = try reader.string(limit: 200) }
    guard let text else { throw HTTPError.missing("token", "that of `reelhaul token create`") }
    guard settings.requiresTokens else { return HTTPResponse(type: Self.json, session(.everybody, nil)) }
    let exchange = Exchange(call.request, self)
    switch try await authenticator.answer(text, isSession: false, address: exchange.client.network) {
    case .tooMany(let wait): throw TooMany(wait: wait)
    case .unknown: throw HTTPError(401, "this token does not hold: it is wrong, was revoked, or has expired")
    case .principal(let principal):
      let secret = TokenSecret()
      guard let id = principal.token,
        let made = try await store.createSession(of: id, hash: secret.hash, lifetime: Self.sessionLength)
      else { throw HTTPError(401, "this token does not hold any more") }
      var response = HTTPResponse(type: Self.json, session(Principal(made), made.expiresAt))
      // Both are of the store's clock.
      let left = made.expiresAt.map { ($0.microseconds - made.createdAt.microseconds) / 1_000_000 } ?? 0
      response.headers["Set-Cookie"] = cookie(secret.text, seconds: Int(max(1, left)), exchange)
      response.headers["Cache-Control"] = "no-store"
      return response
    }
  }

  private func cookie(_ secret: String, seconds: Int, _ exchange: Exchange) -> String {
    Session.field(
      exchange.cookie, secret, seconds: seconds, path: settings.prefix.isEmpty ? "/" : settings.prefix,
      isSecure: exchange.client.isSecure)
  }
}

extension Authenticator {
  /// Writes a stream for as long as what its reader showed holds.
  func guarding(
    _ principal: Principal, _ secret: TokenSecret, on loop: EventLoop, _ stream: HTTPStream,
    _ write: @escaping @Sendable (HTTPStream) async -> Void
  ) async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await write(stream) }
      group.addTask { [self] in await watch(principal, secret, on: loop) }
      await group.next()
      group.cancelAll()
    }
  }

  /// Returns once a secret does not stand for the principal any more. While the store cannot be reached, it does for a
  /// while: streams would all break otherwise.
  private func watch(_ principal: Principal, _ secret: TokenSecret, on loop: EventLoop) async {
    var last = BootInstant.now
    while last + Self.patience > .now {
      do { try await loop.sleep(for: Self.age) } catch { return }
      do {
        guard try await token(of: secret)?.id == principal.token else { return }
        last = .now
      } catch {}
    }
  }
}
