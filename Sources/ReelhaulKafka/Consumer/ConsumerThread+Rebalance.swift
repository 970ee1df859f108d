import CReelhaulKafka
import ReelhaulSystem

extension ConsumerThread {
  func rebalance(_ event: borrowing KafkaEvent) {
    let partitions = event.partitions.map { PartitionList.partitions($0) } ?? []
    if event.code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS {
      assign(partitions)
    } else {
      revoke(partitions)
    }
  }

  /// Gives back and takes partitions, one after the other, until they are the ``wanted`` ones.
  func changePartitions() {
    guard let wanted, coming == nil, revocation == nil else { return }
    let present = Set(ledger.partitions)
    let leaving = present.subtracting(wanted)
    if !leaving.isEmpty { revoke(Array(leaving)) }
    let fresh = wanted.subtracting(present)
    if revocation == nil, !fresh.isEmpty { assign(Array(fresh)) }
  }

  /// Asks for the group's offsets before it takes its new partitions, because only then a gap right at the start is
  /// noticed.
  private func assign(_ partitions: [TopicPartition]) {
    wasAssigned = true
    guard !partitions.isEmpty, !isClosing else { return take(partitions, nil) }
    coming = partitions
    inquirer.ask(GroupQuestion(partitions: partitions, unknown: Set(partitions))) { [self] in
      add(.share(partitions, $0))
    }
  }

  /// Takes the new partitions. If the group refused to answer, librdkafka asks for the offsets by itself.
  func take(_ partitions: [TopicPartition], _ answer: GroupAnswer?) {
    guard isClosing || partitions.isEmpty || coming == partitions else { return }
    coming = nil
    // librdkafka would ask only once: if the coordinator is still moving then, the partitions would never begin.
    if case .failure(let code) = answer, KafkaError(code).isRetryable, !isClosing { return assign(partitions) }
    var offsets: GroupAnswer.Offsets?
    if case .offsets(let told) = answer { offsets = told }
    ledger.assign(partitions, offsets)
    let fresh = PartitionList([])
    // Of a partition without an offset in the group, the beginning is known: nobody needs to ask for it again.
    for partition in partitions {
      let start = offsets.flatMap { $0.absent.contains(partition) ? $0.starts[partition] ?? 0 : nil }
      fresh.add(partition, offset: ledger.positions[partition] ?? start)
    }
    report(fresh.lend { rd_kafka_incremental_assign(handle.raw, $0) }, "assign")
    exchange.dropQuestion()
    flow.apply(to: ledger.partitions, on: handle)
    nextLook = .now
    stalls = StallDetector()
    publishAssignment()
    handle.notice(.assigned(partitions))
    guard let offsets else { return }
    for (partition, expected) in offsets.gone {
      handle.notice(.gap(partition, expected: expected, found: offsets.starts[partition] ?? expected))
    }
    if !offsets.begun.isEmpty { handle.notice(.begun(offsets.begun)) }
  }

  /// Waits for handed-out records to be committed, within the grace, unless the partitions are already lost.
  private func revoke(_ partitions: [TopicPartition]) {
    discard(partitions)
    ledger.revoke(partitions)
    publishAssignment()
    let isLost = rd_kafka_assignment_lost(handle.raw) != 0
    handle.notice(.revoked(partitions, lost: isLost))
    revocation = Revocation(
      partitions: partitions, deadline: isLost || isClosing ? .now : .now + options.revocationGrace)
    finishRevocation()
  }

  /// Gives the partitions back once none of their records waits to be committed, or the grace is over.
  func finishRevocation() {
    guard let revocation else { return }
    let busy = ledger.busy(revocation.partitions)
    guard isClosing || revocation.deadline.hasPassed || busy.isEmpty else { return }
    self.revocation = nil
    if !busy.isEmpty { handle.notice(.repeated(busy)) }
    flow.release(revocation.partitions, on: handle)
    ledger.remove(revocation.partitions)
    let list = PartitionList(revocation.partitions)
    if wanted != nil || String(cString: rd_kafka_rebalance_protocol(handle.raw)) == "COOPERATIVE" {
      report(list.lend { rd_kafka_incremental_unassign(handle.raw, $0) }, "unassign")
    } else {
      // The member has left a broken group, and no longer takes part in the group's protocol.
      rd_kafka_assign(handle.raw, nil)
    }
  }

  /// Checks from time to time for partitions that bring no records.
  func lookAfterPartitions() {
    guard nextLook.hasPassed, revocation == nil else { return }
    nextLook = .now + .seconds(5)
    shallSearch = true
    exchange.askSoon()
  }

  func restartStalled(_ offsets: GroupAnswer.Offsets) {
    let positions = offsets.starts.merging(ledger.positions) { $1 }.filter { offsets.ends[$0.key] != nil }
    let stalled = stalls.look(at: positions, ends: offsets.ends)
    if !stalled.isEmpty { seek(stalled) }
  }

  /// Starts fetching again from these offsets. Does not wait.
  private func seek(_ offsets: [TopicPartition: Int64]) {
    let list = PartitionList([])
    for (partition, offset) in offsets { list.add(partition, offset: offset) }
    report(list.lend { rd_kafka_seek_partitions(handle.raw, $0, 0) }, "seek")
  }

  /// Reads these partitions from the beginning, because the group's offsets are gone or differ from this member's. The
  /// topic was deleted, and a new one of the same name may have fewer or equally many records, so a fetch from the
  /// former position would fail late or never. Records handed out before can no longer be committed by this member.
  func restart(_ partitions: [TopicPartition]) {
    guard !partitions.isEmpty else { return }
    discard(partitions)
    // The offset must be a number: asking for the beginning of a topic that does not exist yet would fail for good.
    seek(Dictionary(uniqueKeysWithValues: ledger.restart(partitions).map { ($0, 0) }))
    exchange.askSoon()
    handle.notice(.restarted(partitions))
  }

  private func report(_ error: OpaquePointer?, _ what: String) {
    if let error { handle.notice(.error(KafkaError(consuming: error, what))) }
  }
}
