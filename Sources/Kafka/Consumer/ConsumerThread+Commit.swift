import CRdKafka

extension ConsumerThread {
  /// A commit on its way, or waiting to be sent again.
  struct PendingCommit {
    var ranges: [KafkaBatch.Range]
    var lost: [TopicPartition] = []
    let answer: CommitAnswer
    /// When to give up.
    let deadline: Deadline
  }

  private static let patience = Duration.seconds(10)
  private static let retryInterval = Duration.milliseconds(50)

  func commit(_ ranges: [KafkaBatch.Range], _ answer: @escaping CommitAnswer) {
    send(PendingCommit(ranges: ranges, answer: answer, deadline: .after(Self.patience)))
  }

  /// Sends what is still this member's. The group is asked first: an offset of a deleted topic would pass by as many
  /// records of the new one.
  private func send(_ commit: PendingCommit) {
    let answer = restart(whereLostAmong: commit.ranges.map(\.partition))
    guard answer == RD_KAFKA_RESP_ERR_NO_ERROR else { return finish(commit, answer) }
    var commit = commit
    commit.lost += commit.ranges.filter { !ledger.owns($0) }.map(\.partition)
    commit.ranges.removeAll { !ledger.owns($0) }
    guard !commit.ranges.isEmpty else {
      commit.answer(.success(commit.lost))
      return
    }
    let list = PartitionList([])
    for range in commit.ranges { list.add(range.partition, offset: range.next) }
    lastCommit += 1
    let code = list.lend {
      rd_kafka_commit_queue(handle.raw, $0, handle.answers, nil, UnsafeMutableRawPointer(bitPattern: lastCommit))
    }
    if code == RD_KAFKA_RESP_ERR_NO_ERROR {
      commits[lastCommit] = commit
    } else {
      finish(commit, code)
    }
  }

  func committed(_ event: borrowing KafkaEvent) {
    guard let commit = commits.removeValue(forKey: Int(bitPattern: rd_kafka_event_opaque(event.raw))) else { return }
    var code = event.code
    if code == RD_KAFKA_RESP_ERR_NO_ERROR, let list = event.partitions {
      code = PartitionList.elements(list).first { $0.err != RD_KAFKA_RESP_ERR_NO_ERROR }?.err ?? code
    }
    finish(commit, code)
  }

  private func finish(_ commit: PendingCommit, _ code: rd_kafka_resp_err_t) {
    if code == RD_KAFKA_RESP_ERR_NO_ERROR {
      for range in commit.ranges { ledger.committed(range) }
      commit.answer(.success(commit.lost))
    } else if Self.isPassing(code), !commit.deadline.hasPassed {
      if refused.isEmpty { retryAt = .after(Self.retryInterval) }
      refused.append(commit)
    } else {
      commit.answer(.failure(KafkaError(code, "commit")))
    }
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

  /// Answers commits that the group has not answered: whoever waits for one takes no more records meanwhile.
  func giveUpCommits() {
    for (number, commit) in commits where commit.deadline.hasPassed {
      commits[number] = nil
      commit.answer(.failure(KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT, "commit")))
    }
  }

  /// Sends refused commits again, once their time has come.
  func retryCommits() {
    guard !refused.isEmpty, retryAt.hasPassed else { return }
    let commits = refused
    refused = []
    for commit in commits { send(commit) }
  }
}
