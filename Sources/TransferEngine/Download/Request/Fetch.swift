import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// One request, from its first URL through its redirects to the end of the body.
///
/// ``Exchange`` judges the response heads, and a ``FetchReceiver`` receives the final answer. A failed request is not
/// repeated here: another connection may have fetched its bytes by then, and only the owner knows this.
// @unchecked: used only on its loop.
final class Fetch: CurlHandler, @unchecked Sendable {
  /// How the request ended.
  struct End {
    /// Where the last request went.
    var place: Place
    /// `nil` if the response is whole.
    var interruption: Interruption?
    /// How long the last request took, without earlier redirects.
    var milliseconds: Int64
    /// The part of it before the head of the answer; `nil` if none came.
    var delay: Int64?
    /// The host refused it because it serves others of this process: there was one too many.
    var isSurplus: Bool
  }

  private var exchange: Exchange
  private let receiver: any FetchReceiver
  /// Told of every head, also those of redirects.
  private let heard: (CurlHead, Place) -> Void
  private var reception: Reception?
  private var headAt: Int64?
  private var hosts: HostConnections?
  /// The host to which a connection is kept while the source is asked for a fresh URL.
  private var kept: String?
  private var fate = HostConnections.Fate.other
  /// How many bytes of an unwanted body may still be read.
  private var skippable = 64 << 10

  init(_ exchange: Exchange, receiver: any FetchReceiver, heard: @escaping (CurlHead, Place) -> Void = { _, _ in }) {
    self.exchange = exchange
    self.receiver = receiver
    self.heard = heard
  }

  /// Returns when all is over; soon, where the task is canceled. `request` is asked for every redirect anew.
  ///
  /// Waits for a connection where the host has all it may have from this process.
  func run(on lane: HTTPLane, _ request: (_ place: Place) -> CurlRequest) async -> End {
    let hosts = lane.hosts
    self.hosts = hosts
    var isRenewed = false
    while true {
      let server = exchange.place.server
      let askedAt = Clocks.boottime()
      var startedAt = askedAt
      var failure: CurlError?
      var isSurplus = false
      (headAt, fate) = (nil, .other)
      if await connect(to: server, on: lane) {
        startedAt = Clocks.boottime()
        if startedAt - askedAt >= Self.freshness, !isRenewed, exchange.restart() {
          // The URL of the redirect may have expired meanwhile: the source is asked for a fresh one.
          (kept, isRenewed) = (server, true)
          continue
        }
        let number = hosts.sent(to: server)
        do throws(CurlError) {
          try await lane.client.perform(request(exchange.place), handler: self)
        } catch {
          failure = error
          if headAt == nil { fate = .init(status: nil, error: error.code) }
        }
        isSurplus = hosts.giveBack(server, for: lane.name, after: fate, of: number)
      } else {
        failure = .canceled
      }
      if !Task.isCancelled, exchange.follow() { continue }
      if let host = kept.take() { hosts.giveBack(host, for: lane.name) }
      await receiver.finish()
      let place = exchange.place
      return End(
        place: place, interruption: failure.map { Interruption($0, url: place.url) },
        milliseconds: (Clocks.boottime() - startedAt) / 1_000_000,
        delay: headAt.map { ($0 - startedAt) / 1_000_000 }, isSurplus: isSurplus)
    }
  }

  /// Takes a connection to `server`, or the one that is kept. Returns false if the task is canceled meanwhile.
  private func connect(to server: String, on lane: HTTPLane) async -> Bool {
    if kept == server {
      kept = nil
      return true
    }
    if let host = kept {
      if lane.hosts.take(server, for: lane.name) { return true }
      // Who waits for a connection must not keep another one.
      lane.hosts.giveBack(host, for: lane.name)
      kept = nil
    }
    return (try? await lane.hosts.connect(to: server, for: lane.name, on: lane.loop, pulse: lane.pulse)) != nil
  }

  /// Some sources sign URLs for a few seconds only.
  private static let freshness = Duration.seconds(1).nanoseconds

  func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict {
    headAt = Clocks.boottime()
    heard(head, exchange.place)
    let answer = exchange.receive(head, now: Clocks.realtimeMicroseconds() / 1_000_000)
    // The short body of a redirect is read too, so that its connection can be used again.
    let reception = answer.map { receiver.receive($0, from: exchange.place) } ?? .skip
    self.reception = reception
    switch (reception, answer) {
    case (.write, _), (.compare, _):
      fate = .served
      hosts?.served(exchange.place.server)
    default: fate = .init(status: head.status)
    }
    return reception == .refuse ? .abort : .continue
  }

  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict {
    switch reception {
    case nil, .refuse: return .abort
    case .write, .compare: return receiver.receive(body: body, of: transfer)
    case .skip:
      guard skippable >= body.count else { return .abort }
      skippable -= body.count
      return .continue
    }
  }
}

/// Receives the answer to a ``Fetch``, on its loop.
protocol FetchReceiver: AnyObject, Sendable {
  /// The last head has arrived. Decides what to do with the body.
  func receive(_ answer: SourceAnswer, from place: Place) -> Reception
  /// Receives bytes of a body that is to be written or compared. They are valid only during the call.
  func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict
  /// The body has ended, whole or not.
  func finish() async
}

extension Interruption {
  fileprivate init(_ error: CurlError, url: String) {
    self.init(failure: TaskFailure(error, url: url), isOwn: error.code == .aborted)
  }
}
