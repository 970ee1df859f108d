import ReelhaulSystem
import TestKit
import Testing

@testable import HTTPServer

/// Requests with random faults. `REELHAUL_FUZZ` is how many; 20,000 otherwise.
@Suite struct ParserFuzzTests {
  private static let seeds = [
    "POST /v1/tasks?wait=applied HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n2\r\nbc\r\n0\r\nTrailer: x\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
    "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /a%20b?x=%2F&y HTTP/1.1\r\nHost: a\r\nCookie: a=b; c=d\r\nAuthorization: Bearer rhl_x\r\n\r\n",
    "\r\n\r\nHEAD / HTTP/1.0\r\n\r\nGET / HTTP/1.1\r\nHost: [::1]:8080\r\nExpect: 100-continue\r\n\r\n",
  ].map { Array($0.utf8) }

  private static let pieces = [
    "\r\n", "\n", "\r", "\0", ":", " ", "\t", ";", "Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: identity\r\n", "ffffffffffffffff\r\n", "0\r\n\r\n", "\u{FFFD}", "%00", "HTTP/1.1",
    "Host: b\r\n",
  ].map { Array($0.utf8) }

  /// Bytes of memory in use.
  private static var resident: Int {
    let text = (try? TextFile.read("/proc/self/statm")) ?? ""
    return (Int(text.split(separator: " ").dropFirst().first ?? "") ?? 0) * 4096
  }

  private static func mutated(_ random: inout SplitMix64) -> [UInt8] {
    var bytes = seeds[Int.random(in: 0..<seeds.count, using: &random)]
    for _ in 0..<Int.random(in: 0...5, using: &random) where !bytes.isEmpty {
      let place = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
      case 1: bytes.remove(at: place)
      case 2: bytes.insert(contentsOf: bytes[place..<min(bytes.count, place + 20)], at: place)
      case 3: bytes.insert(contentsOf: pieces[Int.random(in: 0..<pieces.count, using: &random)], at: place)
      case 4: bytes.removeSubrange(place..<min(bytes.count, place + 9))
      default:
        let other = seeds[Int.random(in: 0..<seeds.count, using: &random)]
        bytes.replaceSubrange(place..., with: other[Int.random(in: 0..<other.count, using: &random)...])
      }
    }
    return bytes
  }

  /// What a parser makes of bytes that come in pieces, until it fails or has no more.
  private static func outcome(_ bytes: [UInt8], cuts: [Int], _ limit: Int) -> [String] {
    let parser = RequestParser()
    var found: [String] = []
    var start = 0
    for end in cuts + [bytes.count] {
      var progress = bytes[start..<end].withUnsafeBytes { parser.feed($0) }
      start = end
      while true {
        switch progress {
        case .head, .body: break
        case .announced:
          progress = parser.proceed(limit: limit)
          continue
        case .request(let request, let keepsAlive):
          found.append("\(request.method) \(request.target) \(request.headers.fields) \(request.body) \(keepsAlive)")
          parser.reset()
          if parser.pending > 0 {
            progress = parser.next()
            continue
          }
        case .failed(let error): return found + ["\(error.status)"]
        }
        break
      }
      guard parser.bodyBytes <= limit, parser.pending <= bytes.count else { return ["out of bounds"] }
    }
    return found
  }

  @Test("whatever comes is read or refused, within bounds, and however it is cut into pieces") func mutated() {
    let count = ProcessEnvironment.all["REELHAUL_FUZZ"].flatMap { Int($0) } ?? 20_000
    var random = SplitMix64(seed: 11)
    var refused = 0
    let before = Self.resident
    for number in 0..<count {
      let bytes = Self.mutated(&random)
      let whole = Self.outcome(bytes, cuts: [], 64)
      #expect(whole != ["out of bounds"])
      if whole.last.map({ $0.count == 3 }) == true { refused += 1 }
      guard number % 4 == 0 else { continue }
      let cuts = (0..<Int.random(in: 1...4, using: &random)).map { _ in Int.random(in: 0...bytes.count, using: &random)
      }
      let cut = Self.outcome(bytes, cuts: cuts.sorted(), 64)
      // Of what cannot be read, the first fault in sight decides; which requests came before it does not change.
      #expect(cut.filter { $0.count > 3 } == whole.filter { $0.count > 3 }, "\(String(decoding: bytes, as: UTF8.self))")
    }
    #expect(refused > count / 10 && refused < count)
    #expect(Self.resident - before < 64 << 20)
  }
}
