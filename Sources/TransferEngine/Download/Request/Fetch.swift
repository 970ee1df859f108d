import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// One request, from its first URL through its redirects to the end of the answer's body.
///
/// ``Exchange`` judges what arrives, and a ``FetchReceiver`` takes the answer. A request that failed is not repeated here:
/// its owner knows whether another connection has its bytes by then.
// @unchecked: touched on its loop alone.
final class Fetch: CurlHandler, @unchecked Sendable {
  /// How it ended.
  struct End {
    /// Where the last request went.
    var place: Place
    /// `nil` where the response is whole.
    var interruption: Interruption?
    /// The time of the last request.
    var milliseconds: Int64
  }

  private var exchange: Exchange
  private let receiver: any FetchReceiver
  private var reception: Reception?
  /// What may still be read of a body that nobody wants.
  private var skippable = 64 << 10

  init(_ exchange: Exchange, receiver: any FetchReceiver) {
    self.exchange = exchange
    self.receiver = receiver
  }

  /// Returns when all is over; soon, where the task is canceled. `request` is asked for every redirect anew.
  ///
  /// Waits for a connection where the host has all it may have from this process; `pulse` is called now and then meanwhile.
  func run(
    on client: CurlClient, sharing hosts: HostConnections, pulse: @escaping @Sendable () -> Void,
    _ request: (_ place: Place) -> CurlRequest
  ) async -> End {
    while true {
      let server = exchange.place.server
      var startedAt = Clocks.boottime()
      var failure: CurlError?
      if await connect(to: server, of: hosts, on: client.loop, pulse) {
        startedAt = Clocks.boottime()
        do throws(CurlError) {
          _ = try await client.perform(request(exchange.place), handler: self)
        } catch {
          failure = error
        }
        hosts.giveBack(server)
      } else {
        failure = .canceled
      }
      if !Task.isCancelled, exchange.follow() { continue }
      await receiver.finish()
      let place = exchange.place
      return End(
        place: place, interruption: failure.map { Interruption($0, url: place.url) },
        milliseconds: (Clocks.boottime() - startedAt) / 1_000_000)
    }
  }

  /// False where the task is canceled before there is a connection.
  private func connect(
    to server: String, of hosts: HostConnections, on loop: EventLoop, _ pulse: @escaping @Sendable () -> Void
  ) async -> Bool {
    if hosts.take(server) { return true }
    let waiting = loop.task { while (try? await loop.sleep(for: .seconds(10))) != nil { pulse() } }
    defer { waiting.cancel() }
    return (try? await hosts.wait(for: server)) != nil
  }

  func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict {
    let answer = exchange.receive(head, now: Clocks.realtimeMicroseconds() / 1_000_000)
    // Of a redirect, too, the body is read where it is short: its connection may be used again.
    let reception = answer.map { receiver.receive($0, from: exchange.place) } ?? .skip
    self.reception = reception
    return reception == .refuse ? .abort : .continue
  }

  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict {
    switch reception {
    case nil, .refuse: return .abort
    case .write: return receiver.receive(body: body, of: transfer)
    case .skip:
      guard skippable >= body.count else { return .abort }
      skippable -= body.count
      return .continue
    }
  }
}

/// Takes the answer to a ``Fetch``, on its loop.
protocol FetchReceiver: AnyObject, Sendable {
  /// The last head is there: what becomes of the body.
  func receive(_ answer: SourceAnswer, from place: Place) -> Reception
  /// Bytes of a body that is written, valid during the call alone.
  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict
  /// Nothing more comes, whether the body is whole or not.
  func finish() async
}

extension Interruption {
  fileprivate init(_ error: CurlError, url: String) {
    self.init(failure: TaskFailure(error, url: url), isOwn: error.code == .aborted)
  }
}
