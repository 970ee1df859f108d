import CReelhaulKafka
import ReelhaulSystem

/// Commits run while records come and go: the thread asks the group for its offsets, and then commits all ranges that
/// are done by that time.
extension ConsumerThread {
  /// Asks the group before every commit, and from time to time. If a topic is deleted and created again, an offset of
  /// the old topic would skip that many records of the new one.
  func askGroup() {
    let now = BootInstant.now
    if exchange.expire(now: now) { handle.notice(.uncommitted(KafkaError(RD_KAFKA_RESP_ERR__TIMED_OUT, "commit"))) }
    guard !ledger.isEmpty, let number = exchange.question(isAwaited: ledger.hasUncommitted, now: now) else { return }
    let question = GroupQuestion(
      partitions: ledger.held, unknown: Set(ledger.partitions.filter { !ledger.isKnown($0) }),
      searched: stalls.wasIdle && shallSearch ? ledger.partitions : [])
    if !question.searched.isEmpty { shallSearch = false }
    inquirer.ask(question) { [self] in add(.answer($0, to: number)) }
  }

  func answered(_ answer: GroupAnswer, to number: Int) {
    guard exchange.answered(number) else { return }
    switch answer {
    case .failure(let code): failed(code)
    case .offsets(let offsets):
      restart(ledger.learn(offsets))
      if !offsets.ends.isEmpty { restartStalled(offsets) }
      let ranges = ledger.uncommitted
      if !ranges.isEmpty {
        commit(ranges)
      } else if ledger.hasUncommitted {
        // The beginning of the partition's log could not be found out.
        exchange.failed(mayPass: true, now: .now)
      }
    }
  }

  private func commit(_ ranges: [KafkaBatch.Range]) {
    let list = PartitionList([])
    for range in ranges { list.add(range.partition, offset: range.next) }
    let number = UnsafeMutableRawPointer(bitPattern: exchange.commit(ranges, now: .now))
    let code = list.lend { rd_kafka_commit_queue(handle.raw, $0, handle.answers, nil, number) }
    if code != RD_KAFKA_RESP_ERR_NO_ERROR { failed(code) }
  }

  func committed(_ event: borrowing KafkaEvent) {
    guard let ranges = exchange.committed(Int(bitPattern: rd_kafka_event_opaque(event.raw))) else { return }
    var code = event.code
    if code == RD_KAFKA_RESP_ERR_NO_ERROR, let list = event.partitions {
      code = PartitionList.elements(list).first { $0.err != RD_KAFKA_RESP_ERR_NO_ERROR }?.err ?? code
    }
    guard code == RD_KAFKA_RESP_ERR_NO_ERROR else { return failed(code) }
    for range in ranges { ledger.committed(range) }
  }

  private func failed(_ code: rd_kafka_resp_err_t) {
    let mayPass = Self.isPassing(code)
    exchange.failed(mayPass: mayPass, now: .now)
    if !mayPass { handle.notice(.uncommitted(KafkaError(code, "commit"))) }
  }

  /// Whether the group is between two generations, or its coordinator moves. Partitions that stay with this member can
  /// be committed in the next generation. The records of the others come again at their next owner.
  ///
  /// If a commit arrives in the group's next generation, librdkafka 2.0 treats this as a lost assignment and gives back
  /// all partitions.
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
