/// The progress of a running task, sampled a few times a second. A lost sample does no harm.
public struct ProgressSample: Hashable, Sendable {
  public var taskID: UniqueID
  public var epoch: Int
  public var bytesDone: Int64
  public var bytesTotal: Int64?
  /// Bytes per second.
  public var rate: Int64

  public init(taskID: UniqueID, epoch: Int, bytesDone: Int64, bytesTotal: Int64?, rate: Int64) {
    self.taskID = taskID
    self.epoch = epoch
    self.bytesDone = bytesDone
    self.bytesTotal = bytesTotal
    self.rate = rate
  }

  /// Seconds left at the current rate, if the total and the rate are known.
  public var eta: Int64? { Self.eta(bytesDone: bytesDone, bytesTotal: bytesTotal, rate: rate) }

  /// Seconds that the remaining bytes take, rounded up; 0 if more bytes came than expected.
  static func eta(bytesDone: Int64, bytesTotal: Int64?, rate: Int64?) -> Int64? {
    guard let bytesTotal, let rate, rate > 0, bytesDone >= 0 else { return nil }
    let (seconds, rest) = max(0, bytesTotal - bytesDone).quotientAndRemainder(dividingBy: rate)
    return rest > 0 ? seconds + 1 : seconds
  }
}
