import TaskCore

/// Decides how a source is fetched: which requests are made, what is made of their answers, when all bytes are there.
/// Pure: events in, actions out; no I/O and no clock.
///
/// The first request asks for the source's first chunk, which is probe and transfer in one. What comes back decides: a
/// part and a strong validator → ranges on several connections; anything else that is the file → the whole in one
/// response. A source that changes on the way starts a new generation, with a new staging file.
struct DownloadMachine {
  /// A request the shell has to make.
  struct Request: Hashable {
    var id: Int
    var place: Place
    var asked: ResponseGate.Asked
    /// The validator for `If-Range`.
    var ifRange: String?
  }

  enum Action: Hashable {
    case request(Request)
    /// Ends a request early; its end is reported all the same.
    case cancel(Int)
    /// A running request takes only its first `count` bytes: another one fetches the rest.
    case shorten(Int, count: Int64)
    /// A new, empty staging file; an older one is not used any more.
    case openStaging(generation: Int, size: Int64?)
    /// Reports ``retryDue`` after about so long.
    case pause(milliseconds: Int64)
    /// Reports ``credentialRefreshed(isNew:)`` once the task's credential was read again.
    case refreshCredential
    /// All bytes are written; the file is as long as `bytes`.
    case complete(bytes: Int64)
    /// No request is left.
    case end(End)
  }

  enum End: Hashable {
    case stopped
    case failed(TaskFailure)
  }

  /// The source's URL, normalised.
  let source: String
  let expect: Expectation
  /// The task names a credential, which goes to the source's own server.
  let hasCredential: Bool
  let limits: DownloadLimits
  var state: State
  var requests = Requests()
  var server: Server
  var tally: Tally

  init(
    source: String, expect: Expectation, hasCredential: Bool = false, generation: Int, limits: DownloadLimits,
    governor: ConnectionGovernor? = nil
  ) {
    self.source = source
    self.expect = expect
    self.hasCredential = hasCredential
    self.limits = limits
    state = .working(.probing(Probe(generation: generation)))
    server = Server(
      governor: governor ?? ConnectionGovernor(maximum: limits.connections, start: limits.firstConnections))
    tally = Tally(retries: RetryBudget(limit: limits.retries, firstMilliseconds: limits.retryMilliseconds))
  }

  /// Starts, from what an earlier run left where its bytes were found again.
  mutating func begin(resuming checkpoint: DownloadCheckpoint?) -> [Action] {
    guard let checkpoint else { return send() }
    guard let size = checkpoint.identity.size, canUseRanges(checkpoint.identity),
      checkpoint.done.ranges.last.map({ $0.upperBound <= size }) ?? true
    else {
      state = .working(.probing(Probe(generation: generation + 1)))
      return send()
    }
    let version = Version(identity: checkpoint.identity, generation: generation, isResumable: true)
    let plan = ChunkScheduler(size: size, done: checkpoint.done, limits: limits.chunks)
    state = .working(.ranges(Ranges(version: version, plan: plan, resolved: nil, needsSeal: true)))
    return send()
  }

  /// Nothing more is to be fetched: the task was paused, canceled or taken away.
  mutating func stop() -> [Action] {
    end(.stopped)
  }

  /// Something else failed: the disk, the store.
  mutating func fail(_ failure: TaskFailure) -> [Action] {
    end(.failed(failure))
  }

  func canUseRanges(_ identity: SourceIdentity) -> Bool {
    identity.isStrong || expectsDigest
  }

  var expectsDigest: Bool { expect.sha256 != nil || expect.md5 != nil }
}

// What the shell asks.
extension DownloadMachine {
  /// That of the version being fetched, or of the one that a response will tell of.
  var generation: Int {
    switch state.subject {
    case .unknown(let generation): generation
    case .known(let version): version.generation
    }
  }

  /// The version being fetched; `nil` until a response told of it.
  var version: Version? {
    if case .known(let version) = state.subject { version } else { nil }
  }

  var identity: SourceIdentity? { version?.identity }

  /// Whether the recorded ranges can be resumed: not for a source that is fetched whole.
  var isResumable: Bool { version?.isResumable ?? false }

  /// Where requests for parts go, once that is known.
  var resolved: Place? {
    if case .working(.ranges(let ranges)) = state { ranges.resolved } else { nil }
  }

  /// The shell has all bytes, and is to publish them.
  var isComplete: Bool {
    if case .complete = state { true } else { false }
  }
}
