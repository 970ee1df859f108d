import HTTPServer
import ReelhaulSystem

/// Compresses answers, and keeps some of them, because many clients ask for the same.
final class Compressor: Sendable {
  private static let least = 1024
  private static let mostBytes = 8 << 20

  private struct Kept {
    var bodies: [String: [UInt8]] = [:]
    var bytes = 0
  }

  private let kept = Lock(Kept())

  /// Whether compressing an answer is worth it.
  static func takes(_ bytes: [UInt8], _ type: String?) -> Bool {
    guard bytes.count >= least, let type else { return false }
    return ["text/", "application/json", "application/problem+json", "image/svg"].contains { type.hasPrefix($0) }
  }

  /// Whether a client reads gzip, RFC 9110, 12.5.3.
  static func isAccepted(_ field: String?) -> Bool {
    var all = false
    for part in field?.split(separator: ",") ?? [] {
      let words = part.split(separator: ";").map { $0.filter { $0 != " " }.lowercased() }
      let isRefused = words.dropFirst().contains { $0.hasPrefix("q=") && (Double($0.dropFirst(2)) ?? 0) == 0 }
      if words.first == "gzip" { return !isRefused }
      if words.first == "*" { all = !isRefused }
    }
    return all
  }

  /// The compressed body; nil if it would not be smaller. `tag` names the bytes.
  func compressed(_ bytes: [UInt8], _ tag: String) -> [UInt8]? {
    if let body = kept.withLock({ $0.bodies[tag] }) { return body }
    guard let body = Gzip.encode(bytes), body.count < bytes.count else { return nil }
    kept.withLock { kept in
      if kept.bytes + body.count > Self.mostBytes { kept = Kept() }
      if kept.bodies.updateValue(body, forKey: tag) == nil { kept.bytes += body.count }
    }
    return body
  }
}
