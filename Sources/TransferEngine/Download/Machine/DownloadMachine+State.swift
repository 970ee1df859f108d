import TaskCore

extension DownloadMachine {
  /// What the run is about.
  enum State {
    /// Can transition to: waiting, complete, restarting, ending.
    case working(Work)
    /// No request runs. Can transition to: working, ending.
    case waiting(Wait, Work)
    /// The shell has the bytes. Can transition to: restarting (their digest is wrong), ending.
    case complete(Version)
    /// A new generation, as soon as no request is left. Can transition to: working, ending.
    case restarting(Probe)
    /// The end, as soon as no request is left. Can transition to: ended.
    case ending(End, Subject)
    case ended(Subject)
  }

  enum Work {
    /// Can transition to: ranges, whole.
    case probing(Probe)
    /// Can transition to: probing (what is there cannot be resumed), sealing.
    case ranges(Ranges)
    /// Can transition to: probing, sealing.
    case whole(Whole)
    /// All bytes are there; is the source still the same?
    case sealing(Seal)
  }

  enum Wait {
    /// For the end of ``Action/pause(milliseconds:)``.
    case retry
    /// For the credential that is read again after this refusal.
    case credential(TaskFailure)
  }

  /// A version of the source.
  struct Version: Hashable {
    var identity: SourceIdentity
    let generation: Int
    /// Its ranges can be recorded and resumed.
    let isResumable: Bool
  }

  /// Which version a run is about.
  enum Subject {
    /// One that no response has told of.
    case unknown(generation: Int)
    case known(Version)
  }

  /// One request asks what the source is.
  struct Probe {
    enum Question {
      /// For the first chunk. `former`: what was fetched of the version before, which the source may turn out to have
      /// still.
      case first(former: Former?)
      /// For the whole source: it does not serve ranges.
      case whole
    }

    let generation: Int
    var question = Question.first(former: nil)
    /// The source's server has let this run in before.
    var wasAdmitted = false
  }

  struct Former {
    let version: Version
    let received: ByteRanges
  }

  /// Parts of one version on several connections.
  struct Ranges {
    var version: Version
    var plan: ChunkScheduler
    /// Where requests go; `nil`: the next one starts at the source and follows its redirects.
    var resolved: Place?
    let needsSeal: Bool
  }

  /// One version in one response, which runs.
  struct Whole {
    var version: Version
    let place: Place
    let needsSeal: Bool
  }

  struct Seal {
    let version: Version
    let received: ByteRanges
    var resolved: Place?
  }

  /// What was learned of the server, whatever version it has.
  struct Server {
    var governor: ConnectionGovernor
    /// Bytes per second of the last request that was answered in whole.
    var requestRate: Int64?
    /// How many connections it gives this download at most, because others use it as well.
    var allowed = Int.max
    /// Some honour `If-Range` with a date alone.
    var usesIfRange = true

    /// Bytes per second of one connection, where that is known.
    var connectionRate: Int64? { governor.connectionRate ?? requestRate }
    /// How many connections there should be now.
    var connections: Int { max(1, min(governor.connections, allowed)) }
  }

  /// What is counted over the whole run.
  struct Tally {
    var retries: RetryBudget
    /// Versions of the source that were met.
    var versions = 1
    var digestFailures = 0
    /// The credential was read again after a refusal.
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
    /// In the order in which they began.
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
    /// Where its redirects led.
    var place: Place
    /// The scheduler's, where the request works on one.
    var chunk: Int?
    var answer: Answer?
    /// Bytes that are still wanted of it, where another request took the rest.
    var shortened: Int64?
    /// It was ended early because there are too many: the rest of its chunk is for others.
    var isRetired = false
    /// The bytes of its body that had arrived at the last sample, and how many per second of late.
    var arrived: Int64?
    var pace: Int64?

    /// The offset of the body's first byte.
    var offset: Int64 {
      if case .part(let range, _) = request.asked { range.lowerBound } else { 0 }
    }

    enum Answer {
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
    case .sealing(let seal): .known(seal.version)
    }
  }

  /// Whether the source, or where it redirects to, has let this run in, and is not asked anew since.
  var isAdmitted: Bool {
    switch self {
    case .probing(let probe): probe.wasAdmitted
    case .ranges(let ranges): ranges.resolved != nil
    case .whole: true
    case .sealing(let seal): seal.resolved != nil
    }
  }

  /// What is there of a version that can be resumed.
  var received: DownloadMachine.Former? {
    let (version, received): (DownloadMachine.Version, ByteRanges)
    switch self {
    case .probing, .whole: return nil
    case .ranges(let ranges): (version, received) = (ranges.version, ranges.plan.received)
    case .sealing(let seal): (version, received) = (seal.version, seal.received)
    }
    return version.isResumable ? DownloadMachine.Former(version: version, received: received) : nil
  }
}

extension DownloadMachine.Subject {
  /// The generation of a file that begins anew: what was received of a known version is void.
  var nextGeneration: Int {
    switch self {
    case .unknown(let generation): generation
    case .known(let version): version.generation + 1
    }
  }
}
