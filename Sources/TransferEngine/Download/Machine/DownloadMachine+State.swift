import TaskCore

extension DownloadMachine {
  /// What the run does now.
  enum State {
    /// Can transition to: waiting, complete, restarting, ending.
    case working(Work)
    /// No request runs. Can transition to: working, ending.
    case waiting(Wait, Work)
    /// The shell has the bytes. Can transition to: restarting (their digest is wrong), waiting (a second body differs),
    /// ending.
    case complete(Version)
    /// A new generation begins as soon as no request is left. Can transition to: working, ending.
    case restarting(Probe)
    /// The run ends as soon as no request is left. Can transition to: ended.
    case ending(End, Subject)
    case ended(Subject)
  }

  enum Work {
    /// Can transition to: ranges, whole.
    case probing(Probe)
    /// Can transition to: probing (the received bytes cannot be resumed), sealing.
    case ranges(Ranges)
    /// Can transition to: probing, sealing, comparing.
    case whole(Whole)
    /// All bytes of one body are there. A second one must have the same. Can transition to: probing.
    case comparing(Version)
    /// All bytes are there. One more request checks that the source is still the same. Can transition to: probing,
    /// comparing (only the validators of a whole body differ).
    case sealing(Seal)
  }

  enum Wait {
    /// Until ``Action/pause(milliseconds:)`` is over.
    case retry
    /// Until the credential has been read again, after this refusal.
    case credential(TaskFailure)
    /// Until the written bytes have been looked at.
    case inspection
  }

  /// A version of the source.
  struct Version: Hashable {
    var identity: SourceIdentity
    let generation: Int
    /// Whether its ranges can be recorded and resumed.
    let isResumable: Bool
    /// What proves that its bytes are whole, if their end alone does not.
    var proof: Verification?

    /// The version of a body that a second one must confirm. The validators of such servers prove nothing: without them
    /// nobody takes the bytes for proven ones.
    static func unproven(_ identity: SourceIdentity, generation: Int) -> Version {
      Version(
        identity: SourceIdentity(finalURL: identity.finalURL, size: identity.size), generation: generation,
        isResumable: true, proof: .twoFetches)
    }
  }

  /// The version that a run fetches.
  enum Subject {
    /// No response has named the version yet.
    case unknown(generation: Int)
    case known(Version)
  }

  /// One request finds out what the source is.
  struct Probe {
    enum Question {
      /// Asks for the first chunk. `former` holds the bytes of the version before, because the source may still have
      /// it.
      case first(former: Former?)
      /// Asks for the whole source, because the server does not send ranges.
      case whole
    }

    let generation: Int
    var question = Question.first(former: nil)
    /// Whether the source's server has accepted a request of this run before.
    var wasAdmitted = false
  }

  struct Former {
    let version: Version
    let received: ByteRanges
  }

  /// Fetches parts of one version on several connections.
  struct Ranges {
    var version: Version
    var plan: ChunkScheduler
    /// Where requests go. If `nil`, the next request starts at the source and follows its redirects.
    var resolved: Place?
    /// Where they went before, while one request asks the source anew: that URL may have expired.
    var expired: Place?
    let needsSeal: Bool
    /// There might be more requests, but no rest is worth another one.
    var lacksWork = false
    /// How often a request that held up the end of the file was ended, by the end of its chunk.
    var handovers: [Int64: Int] = [:]
  }

  /// Fetches one version in one response, which is running.
  struct Whole {
    var version: Version
    let place: Place
    let needsSeal: Bool
    /// Whether nothing will prove that the body is whole, once it has ended.
    let needsProof: Bool
    /// Whether a body that was cut differs from a whole one.
    let isDelimited: Bool
  }

  struct Seal {
    let version: Version
    let received: ByteRanges
    /// Whether one answer had all bytes.
    let isWhole: Bool
    var resolved: Place?
  }

  /// Facts about the server that hold for every version of the source.
  struct Server {
    var governor: ConnectionGovernor
    /// Bytes per second of the last request that was answered in whole.
    var requestRate: Int64?
    /// After so long without an answer, a request that others overtook is one that the server does not serve.
    var patienceMilliseconds: Int64 = 1000
    /// Whether the whole was asked for because ranges are not answered as they should be.
    var isAskedWhole = false
    /// Some honour `If-Range` with a date alone.
    var usesIfRange = true
    /// Only one connection is used, because answers on several name different versions.
    var isPinned = false
    /// Others of this process wait for a connection to the host.
    var isAwaited = false

    /// Bytes per second of one connection, where that is known. Samples leave out what a server gives at the beginning of
    /// each answer; requests have it.
    var connectionRate: Int64? {
      guard let sampled = governor.connectionRate, let requestRate else {
        return governor.connectionRate ?? requestRate
      }
      return max(sampled, requestRate)
    }
  }

  /// Counts over the whole run.
  struct Tally {
    var retries: RetryBudget
    /// How many versions of the source the run has seen.
    var versions = 1
    var digestFailures = 0
    /// How long the last body was that has no end of its own and was too short.
    var undelimited: Int64?
    /// Whether the credential was read again after a refusal, and nothing has come since.
    var hasReadCredential = false
    /// What arrived since the last sample of requests that are over.
    var endedBytes: Int64 = 0
  }

  /// The requests that run.
  struct Requests {
    private(set) var running: [Int: Running] = [:]
    private var last = 0

    var isEmpty: Bool { running.isEmpty }
    var count: Int { running.count }
    /// How many are answered and go on.
    var answered: Int { running.values.count { $0.isAccepted && !$0.isRetired } }
    /// In the order in which the requests began.
    var ids: [Int] { running.keys.sorted() }

    subscript(id: Int) -> Running? {
      get { running[id] }
      set { running[id] = newValue }
    }

    mutating func add(_ asked: ResponseGate.Asked, at place: Place, ifRange: String?, chunk: Int?) -> Request {
      last += 1
      let request = Request(id: last, place: place, asked: asked, ifRange: ifRange)
      running[last] = Running(request: request, place: place, chunk: chunk)
      return request
    }
  }

  struct Running {
    let request: Request
    /// Where the request went last, after redirects.
    var place: Place
    /// The id of the scheduler's chunk, if the request fetches one.
    var chunk: Int?
    var answer: Answer?
    /// How many bytes the request is to fetch, after another request took over the rest.
    var shortened: Int64?
    /// It was ended early because there are too many: the rest of its chunk is for others.
    var isRetired = false
    /// The host refused it, but serves others of this process.
    var isSurplus = false
    /// The server did not answer it as a request for a range is to be answered.
    var isMisranged = false
    /// Milliseconds without an answer, and whether others were answered meanwhile.
    var unanswered: Int64 = 0
    var sawOthers = false
    /// How many requests that were sent later have been answered.
    var overtakenBy = 0
    /// The bytes of its body that had arrived at the last sample, and how many per second of late.
    var arrived: Int64?
    var pace: Int64?
    /// Milliseconds for which it has been so slow that a new request would be done much sooner.
    var lagging: Int64 = 0

    var isAccepted: Bool {
      if case .accepted = answer { true } else { false }
    }

    /// The offset of the body's first byte.
    var offset: Int64 {
      if case .part(let range, _) = request.asked { range.lowerBound } else { 0 }
    }

    enum Answer {
      case accepted(count: Int64?)
      case changed(IdentityMismatch)
      case unranged
      case same
      /// The source has the version before again.
      case returned
      case failed(TaskFailure)
      /// It redirects to a URL that is never followed.
      case misdirected(TaskFailure)
    }
  }
}

extension DownloadMachine {
  /// Changes the parts that are being fetched, in place: a copy beside the state would copy the plan with each write.
  mutating func changeRanges(_ change: (inout Ranges) -> Void) {
    guard case .working(.ranges(var ranges)) = state else { return }
    state = .ended(.unknown(generation: 0))
    change(&ranges)
    state = .working(.ranges(ranges))
  }
}

extension DownloadMachine.State {
  var subject: DownloadMachine.Subject {
    switch self {
    case .working(let work), .waiting(_, let work): work.subject
    case .complete(let version): .known(version)
    case .restarting(let probe): .unknown(generation: probe.generation)
    case .ending(_, let subject), .ended(let subject): subject
    }
  }
}

extension DownloadMachine.Work {
  var subject: DownloadMachine.Subject {
    switch self {
    case .probing(let probe): .unknown(generation: probe.generation)
    case .ranges(let ranges): .known(ranges.version)
    case .whole(let whole): .known(whole.version)
    case .comparing(let version): .known(version)
    case .sealing(let seal): .known(seal.version)
    }
  }

  /// Whether the source, or the server that it redirects to, has accepted a request since the run last began at the
  /// source.
  var isAdmitted: Bool {
    switch self {
    case .probing(let probe): probe.wasAdmitted
    case .ranges(let ranges): ranges.resolved != nil || ranges.expired != nil
    case .whole, .comparing: true
    case .sealing(let seal): seal.resolved != nil
    }
  }

  /// The received bytes; `nil` if the version cannot be resumed.
  var received: DownloadMachine.Former? {
    let (version, received): (DownloadMachine.Version, ByteRanges)
    switch self {
    case .probing, .whole, .comparing: return nil
    case .ranges(let ranges): (version, received) = (ranges.version, ranges.plan.received)
    case .sealing(let seal): (version, received) = (seal.version, seal.received)
    }
    return version.isResumable ? DownloadMachine.Former(version: version, received: received) : nil
  }
}

extension DownloadMachine.Subject {
  /// The generation of a file that begins anew. The bytes of a known version are void, so its number cannot be used
  /// again.
  var nextGeneration: Int {
    switch self {
    case .unknown(let generation): generation
    case .known(let version): version.generation + 1
    }
  }
}
