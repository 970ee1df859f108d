import TaskCore

/// Decides how a source is fetched: which requests to send, what their answers mean, and when all bytes are there.
/// Pure: events in, actions out; no I/O and no clock.
///
/// The first request asks for the source's first chunk, so it is probe and transfer in one. A partial response with a
/// strong validator leads to ranges on several connections. Any other response with the file leads to one response with
/// the whole file. If the source changes during the run, a new generation begins, with a new staging file.
struct DownloadMachine {
  /// A request that the shell sends.
  struct Request: Hashable {
    var id: Int
    var place: Place
    var asked: ResponseGate.Asked
    /// The validator for `If-Range`.
    var ifRange: String?
  }

  enum Action: Hashable {
    case request(Request)
    /// Ends a request early. The shell still reports its end.
    case cancel(Int)
    /// A running request keeps only its first `count` bytes: another request fetches the rest.
    case shorten(Int, count: Int64)
    /// Opens a new, empty staging file; an older one is no longer used.
    case openStaging(generation: Int, size: Int64?)
    /// Waits about this long, then reports ``retryDue``.
    case pause(milliseconds: Int64)
    /// Reads the task's credential again, then reports ``credentialRefreshed(isNew:)``.
    case refreshCredential
    /// Looks whether the written bytes are a file whose boxes add up, then reports ``inspected(addsUp:)``.
    case inspect(bytes: Int64)
    /// All bytes are written: the file has `bytes` bytes.
    case complete(bytes: Int64)
    /// Ends the run. No request is left.
    case end(End)
  }

  enum End: Hashable {
    case stopped
    case failed(TaskFailure)
  }

  /// The source's URL, normalised.
  let source: String
  let expect: Expectation
  /// Whether the task names a credential. It is sent only to the source's own server.
  let hasCredential: Bool
  /// Whether a body that only the end of its connection ends may be proven in another way than by an expectation.
  let allowsUnframed: Bool
  let limits: DownloadLimits
  var state: State
  var requests = Requests()
  var server: Server
  var tally: Tally

  init(
    source: String, expect: Expectation, hasCredential: Bool = false, allowsUnframed: Bool = false, generation: Int,
    limits: DownloadLimits, governor: ConnectionGovernor? = nil
  ) {
    self.source = source
    self.expect = expect
    self.hasCredential = hasCredential
    self.allowsUnframed = allowsUnframed
    self.limits = limits
    state = .working(.probing(Probe(generation: generation)))
    server = Server(
      governor: governor ?? ConnectionGovernor(maximum: limits.connections, start: limits.firstConnections))
    tally = Tally(retries: RetryBudget(limit: limits.retries, firstMilliseconds: limits.retryMilliseconds))
  }

  /// Starts the run, and continues from `checkpoint` if its staging file was found again.
  mutating func begin(resuming checkpoint: DownloadCheckpoint?) -> [Action] {
    guard let checkpoint else { return send() }
    if checkpoint.isUnproven, let size = checkpoint.identity.size, checkpoint.done == ByteRanges(0..<size) {
      state = .working(.comparing(.unproven(checkpoint.identity, generation: generation)))
      return send()
    }
    guard let size = checkpoint.identity.size, canUseRanges(checkpoint.identity), !checkpoint.isUnproven,
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

  /// Stops fetching: the task was paused or canceled, or has another owner.
  mutating func stop() -> [Action] {
    end(.stopped)
  }

  /// Ends the run because something other than a request failed, such as the disk or the store.
  mutating func fail(_ failure: TaskFailure) -> [Action] {
    end(.failed(failure))
  }

  func canUseRanges(_ identity: SourceIdentity) -> Bool {
    identity.isStrong || expectsDigest
  }

  var expectsDigest: Bool { expect.hasDigest }
}

// Questions of the shell.
extension DownloadMachine {
  /// The generation of the version being fetched, or of the version that the next response will name.
  var generation: Int {
    switch state.subject {
    case .unknown(let generation): generation
    case .known(let version): version.generation
    }
  }

  /// The version being fetched; `nil` until a response has named it.
  var version: Version? {
    if case .known(let version) = state.subject { version } else { nil }
  }

  var identity: SourceIdentity? { version?.identity }

  /// Whether the recorded ranges can be resumed; false for a source that is fetched whole, until it is compared.
  var isResumable: Bool { version?.isResumable ?? false }

  /// Where requests for parts go, once that is known.
  var resolved: Place? {
    if case .working(.ranges(let ranges)) = state { ranges.resolved } else { nil }
  }

  /// The bytes are those of one body, which nothing has proven to be whole yet.
  var isUnproven: Bool { version?.proof == .twoFetches }

  /// The shell has all bytes, and is to publish them.
  var isComplete: Bool {
    if case .complete = state { true } else { false }
  }
}
