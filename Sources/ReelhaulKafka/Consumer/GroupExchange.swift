/// The requests to a group: one at a time, a question for its offsets or a commit. Answers to requests that are no
/// longer awaited come too late, and change nothing.
struct GroupExchange {
  private enum Request {
    case question(number: Int)
    case commit([KafkaBatch.Range], number: Int, until: Deadline)
  }

  /// The wait after an error that may pass.
  private static let retryInterval = Duration.milliseconds(50)
  /// The wait after an error that will not pass by itself.
  private static let errorInterval = Duration.seconds(5)
  /// How long a commit may stay unanswered before it is sent again. Longer than librdkafka waits for an answer.
  private static let patience = Duration.seconds(90)

  private var request: Request?
  private var requests = 0
  private var shallAsk = false
  private var rest: Deadline?

  /// Asks soon, even if no commit is waiting.
  mutating func askSoon() { shallAsk = true }

  /// The time to act for a waiting commit; nil while an answer is awaited.
  var nextCommit: Deadline? { request == nil ? rest ?? .now() : nil }

  /// The number of the next question, if it is time to ask one. `isAwaited`: a commit waits.
  mutating func question(isAwaited: Bool, now: Deadline) -> Int? {
    guard request == nil, shallAsk || isAwaited && rest ?? now <= now else { return nil }
    shallAsk = false
    rest = nil
    requests += 1
    request = .question(number: requests)
    return requests
  }

  /// Whether this is the answer to the present question.
  mutating func answered(_ number: Int) -> Bool {
    guard case .question(number: number) = request else { return false }
    request = nil
    return true
  }

  /// The group's partitions have changed, so its answer about the former ones is useless.
  mutating func dropQuestion() {
    if case .question = request { request = nil }
  }

  /// The number of the commit that is about to be sent.
  mutating func commit(_ ranges: [KafkaBatch.Range], now: Deadline) -> Int {
    requests += 1
    request = .commit(ranges, number: requests, until: now.advanced(by: Self.patience))
    return requests
  }

  /// The ranges of the present commit, if this is its answer.
  mutating func committed(_ number: Int) -> [KafkaBatch.Range]? {
    guard case .commit(let ranges, number: number, _) = request else { return nil }
    request = nil
    return ranges
  }

  /// Whether the present commit is given up because no answer came.
  mutating func expire(now: Deadline) -> Bool {
    guard case .commit(_, _, let deadline) = request, deadline <= now else { return false }
    request = nil
    return true
  }

  /// The present request has failed.
  mutating func failed(mayPass: Bool, now: Deadline) {
    request = nil
    rest = now.advanced(by: mayPass ? Self.retryInterval : Self.errorInterval)
  }
}
