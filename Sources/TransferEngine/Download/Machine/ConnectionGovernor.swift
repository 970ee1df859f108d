/// Decides how many connections one download uses: more while each brings its share, fewer if they do not, or if the
/// server refuses them.
///
/// Pure: the input is samples of the bytes that arrived. At the beginning, while a connection is slow, the number grows at
/// once (the ramp): servers that are far away or throttle do not mind. Later it changes by trials, up and down. A trial
/// compares the throughput before a change with the throughput after it, when new connections had time to move bytes. Its
/// verdict is void as soon as the throughput falls far below the one that it was based on. So a burst at the beginning
/// cannot keep a download at few connections.
struct ConnectionGovernor: Sendable {
  /// The numbers it is steered by. Bytes per second and milliseconds.
  struct Limits: Hashable, Sendable {
    /// A connection with a lower rate is slow, and others are opened without a trial.
    var slowRate: Int64 = 24 << 20
    /// A download with this throughput gets no more connections: the disk or a core is the next limit.
    var fastThroughput: Int64 = 1 << 30
    /// A download that is to have less than this has no ramp: its bytes come in lumps, of which a short time tells
    /// nothing.
    var smallThroughput: Int64 = 1 << 20
    /// If connections move no byte for so long, another one is opened.
    var standstill: Int64 = 2000
    /// The time that the ramp measures between two steps.
    var rampWindow: Int64 = 100
    /// After a change, the time without and the time of a measurement, if connections are slow …
    var settling: Int64 = 1000
    var measuring: Int64 = 1000
    /// … and if they are fast, because then a shorter time tells enough.
    var fastSettling: Int64 = 100
    var fastMeasuring: Int64 = 150
    /// The time until a failed trial is repeated. It doubles with each failure, up to `longestRest`.
    var rest: Int64 = 5000
    var longestRest: Int64 = 60_000
    /// The time until as many connections as were refused are tried again. It doubles each time they are refused again,
    /// up to `longestCaution`.
    var caution: Int64 = 60_000
    var longestCaution: Int64 = 960_000
    /// A trial with more connections succeeds if it brings this share of what the new ones can bring at best. A trial with
    /// fewer succeeds if it costs less than `lossPercent` of what the closed ones brought at best.
    var gainPercent: Int64 = 40
    var lossPercent: Int64 = 30
    /// A verdict is void if the throughput falls below this share of the one that it was based on.
    var voidPercent: Int64 = 60
  }

  /// The bytes that arrived since the last sample.
  struct Sample: Hashable, Sendable {
    var milliseconds: Int64
    /// On all connections.
    var bytes: Int64
    /// The connections that received during the whole time, and their bytes.
    var settled: Int
    var settledBytes: Int64
    /// The download itself made a connection wait, for a limit or a slow disk.
    var isHeldBack: Bool

    init(milliseconds: Int64, bytes: Int64, settled: Int, settledBytes: Int64, isHeldBack: Bool = false) {
      self.milliseconds = min(max(1, milliseconds), 1 << 20)
      self.bytes = min(max(0, bytes), 1 << 50)
      self.settled = settled
      self.settledBytes = min(max(0, settledBytes), 1 << 50)
      self.isHeldBack = isHeldBack
    }
  }

  /// How many connections there should be now.
  private(set) var connections: Int
  /// Bytes per second of one connection, of late; `nil` at first.
  private(set) var connectionRate: Int64?
  /// The throughput that is wanted, in bytes per second; `nil`: as much as there is.
  var wanted: Int64?
  /// The equal part of a limit that the download has in common with others, in bytes per second; `nil`: there is no
  /// such limit. It may have more while others have less.
  var share: Int64?

  /// How many connections the host gives this download at most, because others use it as well.
  var allowed = Int.max {
    didSet {
      if connections > most { setBack(to: most) }
      // What was held down by others finds out again how much it can use.
      if allowed > oldValue, connections >= oldValue { reset() }
    }
  }

  private let limits: Limits
  private let maximum: Int
  /// Lower than `maximum` for some time after refusals.
  private var ceiling: Int
  private var sinceRefusal: Int64 = .max
  private var caution: Int64 = 0
  /// The most connections that were answered while others were refused, of late.
  private var answered = 0
  /// How long the answered connections have moved no byte.
  private var standstill: Int64 = 0
  private var sinceBreak: Int64 = .max
  private var beforeBreaks: Int?
  private var phase: Phase
  private var up: Pause
  private var down: Pause

  private enum Phase {
    /// Connections are added while one is slow.
    case ramp(Measurement)
    /// Every trial begins and ends with a measurement. `trial`: what there was before the present step.
    case measuring(Measurement, trial: Trial?)
  }

  fileprivate struct Measurement {
    /// Nothing is counted for so long.
    var settling: Int64 = 0
    var milliseconds: Int64 = 0
    var bytes: Int64 = 0
    /// The time of all settled connections together, and their bytes.
    var settledMilliseconds: Int64 = 0
    var settledBytes: Int64 = 0
    var isHeldBack = false

    /// Bytes per second.
    var throughput: Int64 { bytes.perSecond(of: milliseconds) }
    /// Of one connection.
    var rate: Int64 { settledBytes.perSecond(of: settledMilliseconds) }
  }

  private struct Trial {
    let connections: Int
    let throughput: Int64
  }

  /// The time until a kind of trial is made again.
  fileprivate struct Pause {
    var left: Int64
    /// The next one, if the trial fails.
    var next: Int64
    /// The throughput that the last verdict was based on.
    var verdict: Int64 = 0
  }

  /// Starts with `start` connections and never uses more than `maximum`.
  ///
  /// - Parameter rate: bytes per second of one connection, if `start` is what was right for this host a short time ago.
  ///   The download then begins without the ramp.
  init(maximum: Int, start: Int = 1, rate: Int64? = nil, limits: Limits = Limits()) {
    self.limits = limits
    self.maximum = max(1, maximum)
    ceiling = self.maximum
    connections = min(max(1, start), ceiling)
    phase = rate != nil ? .measuring(Measurement(settling: limits.settling), trial: nil) : .ramp(Measurement())
    up = Pause(left: rate != nil ? limits.rest : 0, next: limits.rest)
    up.verdict = min(rate ?? 0, 1 << 50) * Int64(min(connections, 1 << 10))
    down = Pause(left: 2 * limits.rest, next: 2 * limits.rest)
  }

  /// The milliseconds until the next sample should be taken.
  var interval: Int64 {
    switch phase {
    case .ramp: limits.rampWindow / 2
    case .measuring(_, let trial): trial != nil && isFast ? limits.fastMeasuring / 3 : 1000
    }
  }

  /// Takes a sample.
  mutating func observe(_ sample: Sample) {
    estimate(sample)
    sinceBreak = sinceBreak == .max ? .max : min(sinceBreak + sample.milliseconds, limits.rest)
    sinceRefusal = sinceRefusal == .max ? .max : min(sinceRefusal + sample.milliseconds, 2 * limits.longestCaution)
    if sinceRefusal >= caution { ceiling = maximum }
    openBesideStandstill(sample)
    switch phase {
    case .ramp(let measurement): ramp(measurement.adding(sample))
    case .measuring(let measurement, let trial):
      rest(sample.milliseconds)
      measure(measurement.adding(sample), trial)
    }
  }

  /// Reports that the server refused a connection (429, 503, or an immediate reset) while it answered others. The
  /// download then uses one connection fewer, and for a while never more than were answered.
  ///
  /// - Parameter count: the connections that are being answered.
  mutating func refused(answered count: Int) {
    // Several at once are one event: if the server only restarts, they tell nothing about how many it serves.
    if sinceRefusal > limits.measuring {
      caution = sinceRefusal < 2 * caution ? min(2 * caution, limits.longestCaution) : limits.caution
      (sinceRefusal, answered) = (0, 0)
    }
    answered = max(answered, min(count, connections - 1))
    setBack(to: max(1, connections - 1))
    ceiling = max(connections, answered)
    // No connection that was refused is opened again at once.
    up.verdict = 0
  }

  /// The server leaves `count` connections without an answer while it answers others. There are so many fewer for a while.
  mutating func unserved(_ count: Int) {
    setBack(to: max(1, connections - max(0, count)))
  }

  /// A connection broke in its answer. That happens; if it happens again within seconds, there is one fewer for a while.
  mutating func broke() {
    // Several at once are one event, as when a proxy is restarted.
    guard sinceBreak > limits.measuring else { return }
    if sinceBreak < limits.rest {
      let lasting = lasting
      setBack(to: max(1, connections - 1))
      self.beforeBreaks = lasting
    }
    sinceBreak = 0
  }

  /// The number before connections broke of late.
  var lasting: Int { max(beforeBreaks ?? 0, connections) }

  private var most: Int { max(1, min(ceiling, allowed)) }

  /// No trial runs, and the number was not only set by others' use of the host.
  var isSettled: Bool {
    if case .measuring(_, nil) = phase { connections < allowed || allowed >= ceiling } else { false }
  }

  private mutating func setBack(to count: Int) {
    connections = count
    beforeBreaks = nil
    up.left = max(up.left, limits.rest)
    begin(trial: nil)
  }

  // MARK: Decisions

  /// The rate of one connection: mostly the last second's.
  private mutating func estimate(_ sample: Sample) {
    guard sample.settled > 0, !sample.isHeldBack else { return }
    let rate = (sample.settledBytes / Int64(sample.settled)).perSecond(of: sample.milliseconds)
    let weight = min(sample.milliseconds, 1000)
    connectionRate = connectionRate.map { ($0 / 1000 * (1000 - weight)) + rate / 1000 * weight } ?? rate
  }

  /// Opens one more connection where the others stand still: it tells whether the server or a connection hangs.
  private mutating func openBesideStandstill(_ sample: Sample) {
    let before = standstill
    let standsStill = sample.bytes == 0 && sample.settled > 0 && !sample.isHeldBack
    standstill = standsStill ? min(before + sample.milliseconds, 1 << 20) : 0
    guard before < limits.standstill, standstill >= limits.standstill, connections < most else { return }
    connections += 1
    if case .measuring = phase { begin(trial: nil) }
  }

  private var isFast: Bool { (connectionRate ?? 0) >= limits.slowRate }

  private mutating func ramp(_ measurement: Measurement) {
    guard !measurement.isHeldBack, !isSmall else { return begin(trial: nil) }
    guard measurement.milliseconds >= limits.rampWindow, measurement.bytes > 0, measurement.settledMilliseconds > 0
    else {
      phase = .ramp(measurement)
      return
    }
    // A fast connection may be one that begins with a burst: a trial tells.
    guard measurement.rate < limits.slowRate, !isEnough(measurement.throughput) else { return step(from: measurement) }
    connections = min(connections * 4, most)
    phase = .ramp(Measurement())
    if connections == most { begin(trial: nil) }
  }

  private mutating func measure(_ measurement: Measurement, _ trial: Trial?) {
    guard measurement.milliseconds >= (isFast ? limits.fastMeasuring : limits.measuring) else {
      phase = .measuring(measurement, trial: trial)
      return
    }
    let throughput = measurement.throughput
    guard let trial else { return step(from: measurement) }
    beforeBreaks = nil
    let change = Int64(connections - trial.connections)
    let share = trial.throughput / Int64(trial.connections) * change
    if change > 0 {
      // If the download itself held bytes back, nobody knows what more connections would have brought.
      guard !measurement.isHeldBack else { return retreat(to: trial) }
      // The trial began during a burst.
      if isVoid(trial.throughput, at: throughput) { return reset() }
      guard throughput - trial.throughput >= share / 100 * limits.gainPercent, throughput > trial.throughput else {
        up.failed(at: trial.throughput, limits)
        return retreat(to: trial)
      }
      up.succeeded(limits)
    } else {
      guard throughput - trial.throughput >= share / 100 * limits.lossPercent else {
        down.failed(at: trial.throughput, limits)
        return retreat(to: trial)
      }
      down.succeeded(limits)
      // No connection that was given up is opened again at once.
      up.left = max(up.left, limits.rest)
      up.verdict = 0
    }
    step(from: measurement)
  }

  private mutating func reset() {
    up.succeeded(limits)
    phase = .ramp(Measurement())
  }

  private mutating func retreat(to trial: Trial) {
    connections = min(trial.connections, most)
    begin(trial: nil)
  }

  /// The next trial, if one is due.
  private mutating func step(from measurement: Measurement) {
    let throughput = measurement.throughput
    let trial = Trial(connections: connections, throughput: throughput)
    if up.left > 0, isVoid(up.verdict, at: throughput), !measurement.isHeldBack { return reset() }
    if connections < most, up.left <= 0, throughput > 0, !isEnough(throughput), !measurement.isHeldBack {
      connections = min(connections + max(1, connections < 4 ? connections : connections / 2), most)
      begin(trial: trial)
    } else if connections > 1, down.left <= 0, throughput > 0 {
      connections -= max(1, connections / 4)
      begin(trial: trial)
    } else {
      begin(trial: nil)
    }
  }

  /// Whether a verdict that was based on one throughput is void at another.
  private func isVoid(_ verdict: Int64, at throughput: Int64) -> Bool {
    throughput < verdict / 100 * limits.voidPercent
  }

  private mutating func begin(trial: Trial?) {
    let settling = trial == nil ? 0 : isFast ? limits.fastSettling : limits.settling
    phase = .measuring(Measurement(settling: settling), trial: trial)
  }

  private mutating func rest(_ milliseconds: Int64) {
    up.left = max(0, up.left - milliseconds)
    down.left = max(0, down.left - milliseconds)
  }

  private var isSmall: Bool { min(wanted ?? .max, share ?? .max) < limits.smallThroughput }

  private func isEnough(_ throughput: Int64) -> Bool {
    throughput >= min(limits.fastThroughput, wanted.map { $0 - $0 / 10 } ?? .max)
  }
}

extension ConnectionGovernor.Measurement {
  fileprivate func adding(_ sample: ConnectionGovernor.Sample) -> Self {
    var sum = self
    guard sum.settling <= 0 else {
      sum.settling -= sample.milliseconds
      return sum
    }
    sum.milliseconds += sample.milliseconds
    sum.bytes += sample.bytes
    sum.settledMilliseconds += sample.milliseconds * Int64(sample.settled)
    sum.settledBytes += sample.settledBytes
    if sample.isHeldBack { sum.isHeldBack = true }
    return sum
  }
}

extension ConnectionGovernor.Pause {
  fileprivate mutating func failed(at throughput: Int64, _ limits: ConnectionGovernor.Limits) {
    (left, next, verdict) = (next, min(next * 2, limits.longestRest), throughput)
  }

  fileprivate mutating func succeeded(_ limits: ConnectionGovernor.Limits) {
    (left, next, verdict) = (0, limits.rest, 0)
  }
}

extension Int64 {
  /// Without a product that might overflow.
  fileprivate func perSecond(of milliseconds: Int64) -> Int64 {
    self / Swift.max(1, milliseconds) * 1000 + self % Swift.max(1, milliseconds) * 1000 / Swift.max(1, milliseconds)
  }
}
