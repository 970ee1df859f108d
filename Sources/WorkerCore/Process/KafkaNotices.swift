import Glibc
import ReelhaulKafka
import ReelhaulSystem
import ReelhaulTelemetry

extension KafkaConfiguration {
  /// The same configuration, with the clients' notices in the log.
  ///
  /// - Parameters:
  ///   - patience: How long TLS is refused before new files make clients of old ones lost.
  ///   - onFatal: Called when a client is lost for good.
  func logging(
    to log: Logger, patience: Duration = .seconds(60), onFatal: @escaping @Sendable (KafkaError) -> Void
  ) -> KafkaConfiguration {
    var configuration = self
    let observer = configuration.observer
    let files = KafkaFiles(self)
    let troubles = Lock(KafkaTroubles())
    configuration.observer = { notice in
      observer(notice)
      switch notice {
      case .error(let error) where error.isFatal: onFatal(error)
      case .error(let error)
      where error.isOfTLS && troubles.withLock({ $0.isRefused(for: patience) }) && files.haveChanged:
        let reason = "the files of its TLS settings have changed since the worker began, which must be started anew"
        onFatal(KafkaError(code: error.code, message: "\(error.message); \(reason)"))
      case .error(let error) where error.isRefusal || error.code == .allBrokersDown, .unanswered(let error):
        guard troubles.withLock({ $0.isNews(error) }) else { return }
        log.warning(
          error.isRefusal ? "Kafka refuses this worker" : "Kafka cannot be reached", ["error": .text("\(error)")])
      case .error(let error) where error.isOfRecords:
        guard troubles.withLock({ $0.isNews(error) }) else { return }
        log.warning("Kafka has records that cannot be read", ["error": .text("\(error)")])
      case .answered:
        if troubles.withLock({ $0.end() }) { log.notice("Kafka can be reached again") }
      default: log.note(notice)
      }
    }
    return configuration
  }
}

/// The files that librdkafka reads once, when a client is made.
private struct KafkaFiles {
  private let stamps: [String: [Int]]

  init(_ configuration: KafkaConfiguration) {
    let paths = configuration.properties.filter { $0.key.hasSuffix(".location") }.values
    stamps = Dictionary(paths.compactMap { path in Self.stamp(path).map { (path, $0) } }) { $1 }
  }

  /// Whether one of them is another one now. One that is missing at the moment is not.
  var haveChanged: Bool { stamps.contains { path, stamp in Self.stamp(path).map { $0 != stamp } ?? false } }

  private static func stamp(_ path: String) -> [Int]? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return [Int(bitPattern: status.st_ino), status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
  }
}

/// What the log has told of clients that cannot work. Each client tells of it, and a refused one again and again.
private struct KafkaTroubles {
  private var told: [KafkaError.Code: BootInstant] = [:]
  private var isAway = false
  /// When TLS was refused for the first and for the last time.
  private var refused: (first: BootInstant, last: BootInstant)?
  /// librdkafka tells of the same refusal every 30 seconds.
  private static let pause = Duration.seconds(90)

  /// Whether TLS is refused again and again, for so long.
  mutating func isRefused(for patience: Duration) -> Bool {
    let now = BootInstant.now
    let first = refused.flatMap { now - $0.last < Self.pause ? $0.first : nil }
    refused = (first ?? now, now)
    return first.map { now - $0 >= patience } ?? false
  }

  /// Whether the reason is a new one, or the last time is a minute ago.
  mutating func isNews(_ error: KafkaError) -> Bool {
    // Clients notice in different ways that nobody answers.
    let isSilence = !error.isRefusal && !error.isOfRecords
    let code = isSilence ? .allBrokersDown : error.code
    if let last = told[code], .now - last < .seconds(60) { return false }
    told[code] = .now
    if isSilence { isAway = true }
    return true
  }

  /// Whether Kafka could not be reached until now.
  mutating func end() -> Bool {
    defer { isAway = false }
    return isAway
  }
}

extension Logger {
  fileprivate func note(_ news: KafkaNotice) {
    switch news {
    case .error(let error):
      debug("Kafka", ["error": .text("\(error)")])
    case .gap(let partition, let expected, let found):
      self.error(
        "records are missing from Kafka: they were dropped before they were read",
        ["partition": .of(partition), "expected": .integer(expected), "found": .integer(found)])
    case .begun(let partitions):
      notice(
        "the first commands are gone from Kafka, and no worker is known to have read them",
        ["partitions": .integer(partitions.count)])
    case .restarted(let partitions):
      warning(
        "commands were deleted from Kafka: unread ones are lost, and the topic is read from its beginning",
        ["partitions": .integer(partitions.count)])
    case .stalled(let partition):
      warning("commands in Kafka did not arrive until they were fetched again", ["partition": .of(partition)])
    case .missing(let topics) where topics.isEmpty:
      notice("all topics exist in Kafka again")
    case .missing(let topics):
      warning(
        "Kafka lacks topics, or this user may not see them: create them with 'reelhaul migrate', or grant the right",
        ["topics": .text(topics.joined(separator: ", "))])
    case .assigned(let partitions):
      info("partitions assigned", ["count": .integer(partitions.count)])
    case .revoked(let partitions, let lost):
      // Nobody told the group of it: the broker did not answer, or this process stood still.
      self.log(
        lost ? .warning : .info, "partitions revoked", ["count": .integer(partitions.count), "lost": .bool(lost)])
    case .uncommitted(let error):
      notice("offsets cannot be committed: their commands may come again", ["error": .text("\(error)")])
    case .repeated(let partitions):
      info("commands come again at their next owner", ["partitions": .integer(partitions.count)])
    case .log(_, let facility, let text):
      debug("librdkafka", ["facility": .text(facility), "text": .text(text)])
    case .answered, .unanswered:
      break
    }
  }
}
