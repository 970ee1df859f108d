import ReelhaulCodec
import ReelhaulCurl
import ReelhaulSystem
import ReelhaulTelemetry
import TaskCore

/// Sends the spans of a tracer, and metrics at an interval, to a receiver of OTLP over HTTP.
///
/// Telemetry never holds up work: what the receiver does not take in time is dropped, counted and logged.
package actor OTLPExporter {
  /// The spans to send; nil if none are wanted. Whoever makes spans gets it.
  package nonisolated let tracer: Tracer?
  private let settings: OTLPSettings
  private let encoder: OTLPEncoder
  private let log: Logger
  private let loop: EventLoop
  /// By the file of certificate authorities, because a kept connection is not verified again.
  private let clients: [String?: CurlClient]
  private let wakeup: Wakeup
  private let begunAt = Timestamp(microseconds: Clocks.realtimeMicroseconds())
  private var tasks: [Task<Void, any Error>] = []
  /// Whether the receiver has failed since it last took something, by path.
  private var failing: Set<String> = []
  /// Spans that were dropped and not told of, and when they are.
  private var dropped = 0
  private var tellsOfDroppedAt = BootInstant.now
  /// Whether the last spans and metrics have had their time.
  private var isOver = false
  /// Ends the wait for the metrics that are being read.
  private var giveUp: (@Sendable () -> Void)?

  /// Attempts to send one batch, and the wait before the second.
  private static let attempts = 5
  private static let patience = Duration.seconds(1)
  /// What the last spans and metrics may take at the end.
  private static let farewell = Duration.seconds(3)

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// - Parameter service: the `service.name`, unless the settings have another.
  package init(_ settings: OTLPSettings, service: String, log: Logger) {
    self.settings = settings
    self.log = log
    var resource = settings.resource
    resource["service.name"] = resource["service.name"] ?? service
    resource["service.version"] = resource["service.version"] ?? Build.version
    resource["service.instance.id"] =
      resource["service.instance.id"] ?? UniqueID(milliseconds: Clocks.realtimeMilliseconds()).description
    resource["host.name"] = resource["host.name"] ?? Machine.hostName
    encoder = OTLPEncoder(resource: resource)
    tracer = settings.traces.map { _ in
      Tracer(sampler: settings.sampler, capacity: settings.queue, batch: settings.batch)
    }
    let loop = EventLoop(name: "telemetry")
    self.loop = loop
    let caFiles = [settings.traces, settings.metrics].compactMap(\.self).map(\.caFile)
    clients = Dictionary(
      uniqueKeysWithValues: Set(caFiles).map { caFile in
        (
          caFile,
          CurlClient(
            loop: loop, options: CurlOptions(permits: { _ in true }, receiveBuffer: 16 << 10, caFile: caFile))
        )
      })
    wakeup = Wakeup(loop: loop)
  }

  /// Begins to send. `metrics` are those of this process; nil for none at this time.
  package func start(metrics: @escaping @Sendable () async -> MetricsSnapshot?) {
    if let tracer, let traces = settings.traces {
      tracer.onBatch { [loop, wakeup] in loop.task { await wakeup.call() } }
      tasks.append(loop.task { await self.sendSpans(of: tracer, to: traces) })
    }
    if let endpoint = settings.metrics {
      tasks.append(loop.task { await self.sendMetrics(metrics, to: endpoint) })
    }
  }

  /// Sends what is left within a short time, and ends.
  package nonisolated func close() async {
    await finish()
    await closeClients()
    await Task.detached { [loop] in loop.shutdown() }.value
  }

  private func finish() async {
    for task in tasks { task.cancel() }
    // A request that is under way has the time of the last ones, too.
    let end = loop.task { [loop] in
      try await loop.sleep(for: Self.farewell)
      await self.giveUpAll()
    }
    for task in tasks { _ = await task.result }
    end.cancel()
  }

  private func giveUpAll() async {
    isOver = true
    giveUp?()
    await closeClients()
  }

  private nonisolated func closeClients() async {
    for client in clients.values { await client.close() }
  }

  // MARK: Spans

  private func sendSpans(of tracer: Tracer, to endpoint: OTLPSettings.Endpoint) async {
    while !Task.isCancelled {
      await wakeup.sleep(until: .now + settings.delay)
      // Fewer wait until there is a batch of them again, or their time has come.
      while !Task.isCancelled, await sendBatch(of: tracer, to: endpoint) == settings.batch {}
    }
    let end = BootInstant.now + Self.farewell
    while await sendBatch(of: tracer, to: endpoint, until: end) > 0, !end.hasPassed {}
  }

  /// Returns how many spans there were.
  private func sendBatch(
    of tracer: Tracer, to endpoint: OTLPSettings.Endpoint, until end: BootInstant? = nil
  ) async -> Int {
    let (spans, dropped) = tracer.take()
    self.dropped += dropped
    if self.dropped > 0, tellsOfDroppedAt.hasPassed || end != nil {
      log.warning("spans were dropped: they come faster than they are sent", ["count": .integer(self.dropped)])
      (self.dropped, tellsOfDroppedAt) = (0, .now + .seconds(60))
    }
    if !spans.isEmpty { await send(encoder.encode(spans), to: endpoint, what: "spans", until: end) }
    return spans.count
  }

  // MARK: Metrics

  private func sendMetrics(
    _ read: @escaping @Sendable () async -> MetricsSnapshot?, to endpoint: OTLPSettings.Endpoint
  ) async {
    let timer = Wakeup(loop: loop)
    while true {
      await timer.sleep(until: .now + settings.metricsInterval)
      let end = Task.isCancelled ? BootInstant.now + Self.farewell : nil
      guard let metrics = await snapshot(read) else {
        if Task.isCancelled { return }
        continue
      }
      let now = Timestamp(microseconds: Clocks.realtimeMicroseconds())
      await send(encoder.encode(metrics, start: min(begunAt, now), now: now), to: endpoint, what: "metrics", until: end)
      if end != nil { return }
    }
  }

  /// What `read` returns; nil if it has not by the end of the farewell. It asks a database, which may hang.
  private func snapshot(_ read: @escaping @Sendable () async -> MetricsSnapshot?) async -> MetricsSnapshot? {
    guard !isOver else { return nil }
    return await withCheckedContinuation { continuation in
      let waiting = Lock<CheckedContinuation<MetricsSnapshot?, Never>?>(continuation)
      let settle: @Sendable (MetricsSnapshot?) -> Void = { metrics in
        waiting.withLock { $0.take() }?.resume(returning: metrics)
      }
      giveUp = { settle(nil) }
      // The last ones are read although this task is canceled.
      Task(executorPreference: loop) { settle(await read()) }
    }
  }

  // MARK: Sending

  private enum Outcome {
    case taken
    case refused(String)
    /// It may be taken later.
    case failed(String, after: Duration?)
  }

  private func send(
    _ body: [UInt8], to endpoint: OTLPSettings.Endpoint, what: String, until end: BootInstant?
  ) async {
    var backoff = Backoff(base: Self.patience, limit: .seconds(30), seed: .random(in: 0 ... .max))
    for attempt in 1...Self.attempts {
      let left = end.map { BootInstant.now.duration(to: $0) }
      if let left, left <= .zero { return }
      // The last words are sent although the task is canceled.
      let outcome = await Task(executorPreference: loop) { [endpoint] in
        await self.post(body, to: endpoint, within: min(left ?? endpoint.timeout, endpoint.timeout))
      }.value
      switch outcome {
      case .taken:
        if failing.remove(what) != nil { log.notice("the receiver of \(what) takes them again") }
        return
      case .refused(let reason): return note(reason, what)
      case .failed(let reason, let wait):
        guard attempt < Self.attempts, end == nil, !Task.isCancelled else { return note(reason, what) }
        try? await loop.sleep(for: max(wait ?? .zero, backoff.next()))
      }
    }
  }

  private func note(_ reason: String, _ what: String) {
    log.log(
      failing.insert(what).inserted ? .warning : .debug, "the receiver of \(what) does not take them",
      ["error": .text(reason)])
  }

  private func post(_ body: [UInt8], to endpoint: OTLPSettings.Endpoint, within limit: Duration) async -> Outcome {
    var request = CurlRequest(
      .post, url: endpoint.url,
      headers: [("Content-Type", "application/json"), ("Expect", "")] + endpoint.headers.map { ($0.name, $0.value) },
      connectTimeout: limit, lowSpeed: nil, deadline: limit)
    request.body = CurlBytes(body)
    let collector = CurlAnswerCollector(limit: 4 << 10)
    do throws(CurlError) {
      try await clients[endpoint.caFile]?.perform(request, handler: collector)
    } catch {
      guard error.code == .aborted, collector.answer != nil else { return .failed("\(error)", after: nil) }
    }
    guard let answer = collector.answer else { return .failed("there was no answer", after: nil) }
    switch answer.status {
    case 200..<300: return Self.rejection(in: answer.body).map { .refused($0) } ?? .taken
    case 429, 502, 503, 504:
      return .failed("it answered \(answer.status)", after: Self.wait(answer.head["retry-after"]))
    default: return .refused("it answered \(answer.status)")
    }
  }

  /// How long a receiver asks to wait, in seconds, and at most a minute: what waits behind is dropped meanwhile.
  static func wait(_ text: String?) -> Duration? {
    guard let text, !text.isEmpty, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
    return .seconds(min(60, Int64(text) ?? .max))
  }

  /// Why it did not take some of them, as OTLP's `partialSuccess` says.
  static func rejection(in body: [UInt8]) -> String? {
    var message = ""
    var count = ""
    _ = try? JSONReader.read(body, limit: 4 << 10) { reader throws(DecodingFailure) in
      try reader.object { reader, name throws(DecodingFailure) in
        guard case "partialSuccess" = name else { return try reader.skip() }
        try reader.object { reader, name throws(DecodingFailure) in
          switch name {
          case "errorMessage": message = try reader.string()
          case "rejectedSpans", "rejectedDataPoints":
            // As all numbers of 64 bits it is a string; some write a number.
            count = String(decoding: try reader.raw(), as: UTF8.self).filter(\.isNumber)
          default: try reader.skip()
          }
        }
      }
    }
    guard !count.isEmpty, count != "0" else { return nil }
    return "it took all but \(count)" + (message.isEmpty ? "" : ": \(message)")
  }
}
