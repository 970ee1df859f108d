import CRdKafka

extension ConsumerThread {
  func commit(_ ranges: [KafkaBatch.Range], _ answer: CommitAnswer?) {
    let mine = ranges.filter(ledger.owns)
    let lost = ranges.filter { !ledger.owns($0) }.map(\.partition)
    guard !mine.isEmpty else {
      answer?(.success(lost))
      return
    }
    let list = PartitionList([])
    for range in mine { list.add(range.partition, offset: range.next) }
    lastCommit += 1
    let code = rd_kafka_commit_queue(
      handle.raw, list.raw, handle.answers, nil, UnsafeMutableRawPointer(bitPattern: lastCommit))
    let commit = PendingCommit(ranges: mine, lost: lost, answer: answer)
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
      finish(commit, KafkaError(code, "commit"))
      return
    }
    commits[lastCommit] = commit
  }

  func committed(_ event: borrowing KafkaEvent) {
    guard let commit = commits.removeValue(forKey: Int(bitPattern: rd_kafka_event_opaque(event.raw))) else { return }
    var code = event.code
    if code == RD_KAFKA_RESP_ERR_NO_ERROR, let list = event.partitions {
      code = PartitionList.elements(list).first { $0.err != RD_KAFKA_RESP_ERR_NO_ERROR }?.err ?? code
    }
    finish(commit, code == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(code, "commit"))
  }

  private func finish(_ commit: PendingCommit, _ error: KafkaError?) {
    if let error {
      commit.answer?(.failure(error))
      if commit.answer == nil { handle.notice(.commitFailed(error)) }
      return
    }
    for range in commit.ranges { ledger.committed(range) }
    commit.answer?(.success(commit.lost))
  }
}
