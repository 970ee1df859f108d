import ReelhaulSystem

/// The request that is under way to a group: a question for its offsets, or a commit. There is only one at a time. An
/// answer to a former request comes too late and changes nothing.
struct GroupExchange {
  private enum Request {
    case question(number: Int)
    case commit([KafkaBatch.Range], number: Int, until: BootInstant)
  }

  /// The wait after an error that may pass.
  private static let retryInterval = Duration.milliseconds(50)
  /// The wait after an error that does not pass by itself.
  private static let errorInterval = Duration.seconds(5)
  /// After this time without an answer, a commit is sent again. It is longer than librdkafka waits for an answer.
  private static let patience = Duration.seconds(90)

  private var request: Request?
  private var requests = 0
  private var shallAsk = false
  private var rest: BootInstant?

  /// Asks soon, even if nothing waits to be committed.
  mutating func askSoon() { shallAsk = true }

  /// When the next commit may begin; `nil` while an answer is awaited.
  var nextCommit: BootInstant? { request == nil ? rest ?? .now : nil }

  /// The number of a new question if it is time to ask; otherwise `nil`. `isAwaited`: whether something waits to be
  /// committed.
  mutating func question(isAwaited: Bool, now: BootInstant) -> Int? {
    guard request == nil, shallAsk || isAwaited && rest ?? now <= now else { return nil }
    shallAsk = false
    rest = nil
    requests += 1
    request = .question(number: requests)
    return requests
  }

  /// Returns whether this is the answer to the present question.
  mutating func answered(_ number: Int) -> Bool {
    guard case .question(number: number) = request else { return false }
    request = nil
    return true
  }

  /// Drops the present question, because the assignment has changed and the answer would be about the former one.
  mutating func dropQuestion() {
    if case .question = request { request = nil }
  }

  /// The number of a commit that is about to be sent.
  mutating func commit(_ ranges: [KafkaBatch.Range], now: BootInstant) -> Int {
    requests += 1
    request = .commit(ranges, number: requests, until: now.advanced(by: Self.patience))
    return requests
  }

  /// The ranges of the present commit if this is its answer; otherwise `nil`.
  mutating func committed(_ number: Int) -> [KafkaBatch.Range]? {
    guard case .commit(let ranges, number: number, _) = request else { return nil }
    request = nil
    return ranges
  }

  /// Gives up the present commit if it got no answer in time. Returns whether it did.
  mutating func expire(now: BootInstant) -> Bool {
    guard case .commit(_, _, let deadline) = request, deadline <= now else { return false }
    request = nil
    return true
  }

  /// The present request has failed.
  mutating func failed(mayPass: Bool, now: BootInstant) {
    request = nil
    rest = now.advanced(by: mayPass ? Self.retryInterval : Self.errorInterval)
  }
}
