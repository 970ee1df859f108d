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
  var generation: Int
  /// The version being fetched; `nil` until a response told of it.
  var identity: SourceIdentity?
  /// What was fetched of the version before, which the source may turn out to have still.
  var former: Version?
  /// Whether the recorded ranges can be resumed: not for a source that is fetched whole.
  var isResumable = false

  var plan: ChunkScheduler?
  var governor: ConnectionGovernor
  /// Bytes per second of one connection, as last seen.
  var connectionRate: Int64?
  var running: [Int: Running] = [:]
  var lastRequest = 0
  var phase = Phase.fetching
  /// Where requests go; `nil`: the next one starts at the source and follows its redirects.
  var resolved: Place?
  var mode = Mode.undecided
  var usesIfRange = true
  var failures = 0
  var versions = 1
  var isPausing = false
  /// The source's refusal, after which the credential was read again.
  var refusal: TaskFailure?
  var needsSeal = false
  var digestFailures = 0

  /// What the run is about.
  enum Phase: Hashable {
    case fetching
    /// All bytes are there; is the source still the same?
    case sealing
    /// The shell has the bytes.
    case complete
    /// A new generation, as soon as no request is left.
    case restarting
    /// The end, as soon as no request is left.
    case ending(End)
    case ended
  }

  enum Mode: Hashable {
    case undecided
    case ranges
    case whole
  }

  struct Version: Hashable {
    var identity: SourceIdentity
    var generation: Int
    var received: ByteRanges
  }

  struct Running: Hashable {
    var request: Request
    /// Where its redirects led.
    var place: Place
    /// The scheduler's, where the request works on one.
    var chunk: Int?
    var answer = Answer.none
    /// Bytes that are still wanted of it, where another request took the rest.
    var shortened: Int64?

    /// The offset of the body's first byte.
    var offset: Int64 {
      if case .part(let range, _) = request.asked { range.lowerBound } else { 0 }
    }

    enum Answer: Hashable {
      case none
      case accepted(count: Int64?)
      case changed(IdentityMismatch)
      case unranged
      case same
      /// It tells of the version before.
      case returned
      case failed(TaskFailure)
      /// It redirects to where nobody follows.
      case misdirected(TaskFailure)
    }
  }

  init(
    source: String, expect: Expectation, hasCredential: Bool = false, generation: Int, limits: DownloadLimits
  ) {
    self.source = source
    self.expect = expect
    self.hasCredential = hasCredential
    self.generation = generation
    self.limits = limits
    governor = ConnectionGovernor(maximum: limits.connections, start: limits.firstConnections)
  }

  /// Starts, from what an earlier run left where its bytes were found again.
  mutating func begin(resuming checkpoint: DownloadCheckpoint?) -> [Action] {
    guard let checkpoint, let size = checkpoint.identity.size, canUseRanges(checkpoint.identity),
      checkpoint.done.ranges.last.map({ $0.upperBound <= size }) ?? true
    else {
      if checkpoint != nil { generation += 1 }
      return send()
    }
    identity = checkpoint.identity
    mode = .ranges
    isResumable = true
    needsSeal = true
    plan = ChunkScheduler(size: size, done: checkpoint.done, limits: limits.chunks)
    return send()
  }

  func canUseRanges(_ identity: SourceIdentity) -> Bool {
    identity.isStrong || expectsDigest
  }

  var expectsDigest: Bool { expect.sha256 != nil || expect.md5 != nil }
}
