import CRdKafka

/// What is done is committed in two steps that nothing but the next ones waits for: the group is asked for its offsets, then
/// all that is done by then is committed at once. Records come and go meanwhile.
extension ConsumerThread {
  struct PendingCommit {
    var ranges: [KafkaBatch.Range]
    var lost: [TopicPartition] = []
    let answer: CommitAnswer
  }

  /// What is on its way to the group, at most one; an answer to any other number comes too late.
  enum GroupRequest {
    case question(number: Int)
    case commit([KafkaBatch.Range], number: Int, deadline: Deadline)
  }

  private static let retryInterval = Duration.milliseconds(50)
  /// How long a commit may go unanswered before it is sent again.
  private static let patience = Duration.seconds(10)

  /// Asks the group before every commit, and now and then: an offset of a deleted topic would pass by as many records of the
  /// new one.
  func askGroup() {
    if case .commit(_, _, let deadline) = groupRequest, deadline.hasPassed {
      handle.notice(.error(KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT, "commit")))
      groupRequest = nil
    }
    guard groupRequest == nil, shallAsk || !commits.isEmpty && commitsFrom.hasPassed else { return }
    shallAsk = false
    answerCommits()
    let partitions = ledger.held
    guard !partitions.isEmpty else { return }
    groupRequests += 1
    groupRequest = .question(number: groupRequests)
    inquirer.ask(about: partitions) { [self, number = groupRequests] in add($0, to: number) }
  }

  func answered(_ answer: GroupAnswer, to number: Int) {
    guard case .question(number: number) = groupRequest else { return }
    groupRequest = nil
    switch answer {
    case .offsets(let offsets, let absent):
      restart(absent.filter(ledger.isKnown))
      let unknown = ledger.partitions.filter { !ledger.isKnown($0) }
      for partition in unknown where offsets[partition] != nil { ledger.learn(partition) }
      commit(starts(of: Set(unknown).intersection(absent)))
    case .failure(let code):
      refused(code)
    }
  }

  /// Where the logs begin of which the group has no offset and that no commit is about to give one: the group must know
  /// where it began, for only an offset that was there can be missed.
  private func starts(of partitions: Set<TopicPartition>) -> [KafkaBatch.Range] {
    let others = partitions.subtracting(commits.flatMap(\.ranges).map(\.partition))
    let starts = try? handle.offsets(of: Array(others), at: .first, milliseconds: Self.lookPatience)
    return ledger.ranges(from: starts ?? [:])
  }

  /// Commits what waits for it and is still this member's, and `others`.
  private func commit(_ others: [KafkaBatch.Range]) {
    answerCommits()
    var ranges: [TopicPartition: KafkaBatch.Range] = [:]
    for range in commits.flatMap(\.ranges) + others where range.next > ranges[range.partition]?.next ?? -1 {
      ranges[range.partition] = range
    }
    guard !ranges.isEmpty else { return }
    let list = PartitionList([])
    for range in ranges.values { list.add(range.partition, offset: range.next) }
    groupRequests += 1
    let code = list.lend {
      rd_kafka_commit_queue(handle.raw, $0, handle.answers, nil, UnsafeMutableRawPointer(bitPattern: groupRequests))
    }
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { return refused(code) }
    groupRequest = .commit(Array(ranges.values), number: groupRequests, deadline: .after(Self.patience))
  }

  func committed(_ event: borrowing KafkaEvent) {
    let number = Int(bitPattern: rd_kafka_event_opaque(event.raw))
    guard case .commit(let ranges, number: number, _) = groupRequest else { return }
    groupRequest = nil
    var code = event.code
    if code == RD_KAFKA_RESP_ERR_NO_ERROR, let list = event.partitions {
      code = PartitionList.elements(list).first { $0.err != RD_KAFKA_RESP_ERR_NO_ERROR }?.err ?? code
    }
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { return refused(code) }
    for range in ranges { ledger.committed(range) }
    answerCommits()
  }

  /// Tries again soon where that may help, and otherwise answers whoever waits.
  private func refused(_ code: rd_kafka_resp_err_t) {
    commitsFrom = .after(Self.retryInterval)
    guard !Self.isPassing(code) else { return }
    for commit in commits { commit.answer(.failure(KafkaError(code, "commit"))) }
    commits = []
  }

  /// Answers commits of which nothing is left to do: it is committed, or no longer this member's.
  private func answerCommits() {
    for (index, commit) in commits.enumerated() {
      let lost = commit.ranges.filter { !ledger.owns($0) }
      commits[index].lost += lost.map(\.partition)
      commits[index].ranges.removeAll { lost.contains($0) || ledger.isCommitted($0) }
    }
    for commit in commits where commit.ranges.isEmpty { commit.answer(.success(commit.lost)) }
    commits.removeAll(where: \.ranges.isEmpty)
  }

  /// The group is between two generations, or its coordinator on the move. What stays this member's can be committed in
  /// the next one; what does not is found lost then.
  ///
  /// librdkafka 2.0 takes a commit that meets the group's next generation for a lost assignment, and gives everything
  /// back; the ledger then answers the commit as lost.
  private static func isPassing(_ code: rd_kafka_resp_err_t) -> Bool {
    switch code {
    case RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS,
      RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, RD_KAFKA_RESP_ERR_NOT_COORDINATOR,
      RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS,
      RD_KAFKA_RESP_ERR__WAIT_COORD, RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR__TIMED_OUT:
      true
    default: false
    }
  }
}
