import ReelhaulSystem

/// What is on its way to a group: one request at a time, a question for its offsets or a commit. Answers to requests that
/// are no longer waited for come too late, and change nothing.
struct GroupExchange {
  private enum Request {
    case question(number: Int)
    case commit([KafkaBatch.Range], number: Int, until: BootInstant)
  }

  /// After an error that may pass.
  private static let retryInterval = Duration.milliseconds(50)
  /// After one that will not pass by itself.
  private static let errorInterval = Duration.seconds(5)
  /// How long a commit may go unanswered before it is sent again: longer than librdkafka waits for an answer.
  private static let patience = Duration.seconds(90)

  private var request: Request?
  private var requests = 0
  private var shallAsk = false
  private var rest: BootInstant?

  /// Ask soon, though nothing waits to be committed.
  mutating func askSoon() { shallAsk = true }

  /// When there is something to do for what waits to be committed; `nil`: an answer comes first.
  var nextCommit: BootInstant? { request == nil ? rest ?? .now : nil }

  /// The number of a question, where it is time to ask one. `isAwaited`: something waits to be committed.
  mutating func question(isAwaited: Bool, now: BootInstant) -> Int? {
    guard request == nil, shallAsk || isAwaited && rest ?? now <= now else { return nil }
    shallAsk = false
    rest = nil
    requests += 1
    request = .question(number: requests)
    return requests
  }

  /// Whether it is the answer to the present question.
  mutating func answered(_ number: Int) -> Bool {
    guard case .question(number: number) = request else { return false }
    request = nil
    return true
  }

  /// The shares of the group have changed: what it says of the former ones is of no use.
  mutating func dropQuestion() {
    if case .question = request { request = nil }
  }

  /// The number of a commit that is about to be sent.
  mutating func commit(_ ranges: [KafkaBatch.Range], now: BootInstant) -> Int {
    requests += 1
    request = .commit(ranges, number: requests, until: now.advanced(by: Self.patience))
    return requests
  }

  /// What the present commit is of, if that is its answer.
  mutating func committed(_ number: Int) -> [KafkaBatch.Range]? {
    guard case .commit(let ranges, number: number, _) = request else { return nil }
    request = nil
    return ranges
  }

  /// Whether the present commit has been given up for want of an answer.
  mutating func expire(now: BootInstant) -> Bool {
    guard case .commit(_, _, let deadline) = request, deadline <= now else { return false }
    request = nil
    return true
  }

  /// The present request came to nothing.
  mutating func failed(mayPass: Bool, now: BootInstant) {
    request = nil
    rest = now.advanced(by: mayPass ? Self.retryInterval : Self.errorInterval)
  }
}
