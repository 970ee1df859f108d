import HTTPServer
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TaskStore

/// Knows who sends a request, by the token or the session that it has.
///
/// A token that was asked for in the last two seconds is not asked for again, so one that was revoked or has expired stops
/// within that time. The store alone tells the end of a token: this machine's clock may differ.
/// Nothing that depends on a secret is compared but SHA-256 digests, and those in constant time.
final class Authenticator: Sendable {
  static let age = Duration.seconds(2)
  /// How long a stream goes on while the store cannot be asked.
  static let patience = Duration.seconds(30)

  private struct Entry {
    let token: SharedValue<APIToken?>
    var at: BootInstant
    /// Whether it was valid before.
    var isKnown: Bool
  }

  private struct State {
    var entries: [[UInt8]: Entry] = [:]
    var failures: RateLimit<String>
  }

  private static let mostEntries = 4096
  private let store: any TokenStore
  private let state: Lock<State>

  /// `wrongTokens`: how many an address may send at once.
  init(_ store: any TokenStore, wrongTokens: Int) {
    self.store = store
    state = Lock(State(failures: RateLimit(every: .seconds(6), burst: wrongTokens)))
  }

  enum Answer {
    case principal(Principal)
    /// None was shown, or one that does not hold.
    case unknown
    /// Too many wrong ones came from this address.
    case tooMany(wait: Duration)
  }

  /// `address`: where the request comes from. `session`: the cookie, if it counts. A session counts only there, and a token
  /// only in `Authorization`.
  func principal(of request: HTTPRequest, address: String, session: String?) async throws -> Answer {
    if let field = request.headers["authorization"] {
      let parts = field.split(separator: " ", maxSplits: 1)
      let isBearer = parts.first?.lowercased() == "bearer"
      return try await answer(isBearer ? String(parts.last ?? "") : "", isSession: false, address: address)
    }
    guard let session else { return .unknown }
    return try await answer(session, isSession: true, address: address)
  }

  func answer(_ text: String, isSession: Bool, address: String) async throws -> Answer {
    let secret = TokenSecret(text)
    let now = BootInstant.now
    // Each look-up counts before it begins: of many tokens at once, all would pass otherwise. It is taken back if the
    // token is right.
    let (isCounted, wait) = state.withLock { state -> (Bool, Duration?) in
      let entry = secret.flatMap { state.entries[$0.hash] }
      // Who holds a valid one is not locked out by others behind the same address.
      if entry?.isKnown == true { return (false, nil) }
      // This one is not looked up again.
      if let entry, now - entry.at < Self.age { return (false, state.failures.wait(address, at: now)) }
      let wait = state.failures.admit(address, at: now)
      if wait == nil, let secret { _ = lookUp(secret, in: &state, at: now) }
      return (true, wait)
    }
    if let wait { return .tooMany(wait: wait) }
    let token: APIToken?
    do {
      token = if let secret { try await self.token(of: secret) } else { nil }
    } catch {
      // Of a client that has gone nobody knows what its token is: its look-up goes on.
      if isCounted, !(error is CancellationError) { state.withLock { $0.failures.takeBack(address) } }
      throw error
    }
    if let token, token.isSession == isSession {
      if isCounted { state.withLock { $0.failures.takeBack(address) } }
      return .principal(Principal(token))
    }
    if !isCounted { state.withLock { $0.failures.count(address, at: .now) } }
    return .unknown
  }

  /// The token that a secret stands for, if it holds.
  func token(of secret: TokenSecret) async throws -> APIToken? {
    let now = BootInstant.now
    return try await state.withLock { lookUp(secret, in: &$0, at: now) }.value
  }

  /// The newest look-up, or a new one if that is too old.
  private func lookUp(_ secret: TokenSecret, in state: inout State, at now: BootInstant) -> SharedValue<APIToken?> {
    let entry = state.entries[secret.hash]
    if let entry, now - entry.at < Self.age { return entry.token }
    if state.entries.count >= Self.mostEntries { Self.forget(&state, at: now) }
    let token = SharedValue { [self] in
      do {
        let token = try await store.token(hash: secret.hash)
        self.state.withLock { $0.entries[secret.hash]?.isKnown = token != nil }
        return token
      } catch {
        // It is asked for again; one that was valid before still counts as such.
        self.state.withLock { state in
          if state.entries[secret.hash]?.isKnown == true {
            state.entries[secret.hash]?.at = now - Self.age
          } else {
            state.entries[secret.hash] = nil
          }
        }
        throw error
      }
    }
    state.entries[secret.hash] = Entry(token: token, at: now, isKnown: entry?.isKnown ?? false)
    return token
  }

  /// What is known of a secret is forgotten, because it ends here.
  func forget(_ secret: TokenSecret) { state.withLock { $0.entries[secret.hash] = nil } }

  private static func forget(_ state: inout State, at now: BootInstant) {
    state.entries = state.entries.filter { $0.value.isKnown && now - $0.value.at < .seconds(600) }
    if state.entries.count >= mostEntries { state.entries = [:] }
  }
}
