import HTTPServer
import ReelhaulDigest
import ReelhaulSystem
import TaskCore

/// A key makes a request repeatable: the same key is the same task. It is also the same body: a key that comes with
/// another one is refused.
///
/// The bodies of the newest keys are remembered here, and the task of a key is compared in the store: so it holds after
/// a restart, too.
final class IdempotencyKeys: Sendable {
  private static let most = 10_000

  private struct Known {
    var bodies: [UniqueID: [UInt8]] = [:]
    /// In the order in which they came, as a ring.
    var order: [UniqueID] = []
    var next = 0
  }

  private let known = Lock(Known())

  /// The header field, as the description has it.
  static func field(_ effect: String) -> Route.Field {
    Route.Field(
      name: "Idempotency-Key", help: "Makes the request repeatable: \(effect).",
      schema: .text(pattern: "^[!-~]+$", length: 1...255))
  }

  /// The key of a request; nil if it has none.
  static func key(of request: HTTPRequest) throws(HTTPError) -> String? {
    guard let key = request.headers["idempotency-key"] else { return nil }
    guard 1...255 ~= key.utf8.count, key.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else {
      throw HTTPError(
        422, "the Idempotency-Key must have 1 to 255 characters of ASCII, none of them a space",
        code: ProblemCode.invalidField.rawValue)
    }
    return key
  }

  /// The id of the task or command that a principal's key stands for.
  static func id(_ key: String, of principal: Principal) -> UniqueID {
    // Keys of different tokens do not meet, and nobody can compute, and take, the ids of another token's keys. Where none
    // is needed, all keys are one principal's.
    let owner = principal.account.map { "\($0)\u{0}" } ?? ""
    return UniqueID(derivedFrom: "reelhaul idempotency \(owner)\(key)")
  }

  /// Throws if the key stood for another body.
  func claim(_ key: UniqueID, body: [UInt8]) throws(HTTPError) {
    let sum = digest(.sha256, of: body)
    let isSame = known.withLock { known in
      if let body = known.bodies[key] { return body == sum }
      if known.order.count < Self.most {
        known.order.append(key)
      } else {
        known.bodies[known.order[known.next]] = nil
        known.order[known.next] = key
        known.next = (known.next + 1) % Self.most
      }
      known.bodies[key] = sum
      return true
    }
    if !isSame { throw Self.reused }
  }

  static let reused = HTTPError(
    422, "this Idempotency-Key was used with another body: use a new key for another task",
    code: ProblemCode.keyReused.rawValue)
}
