/// One line of a progress board.
package struct ProgressItem: Sendable, Hashable {
  package enum Phase: Sendable, Hashable {
    case waiting, active, done, failed, stopped
  }

  package var title: String
  /// The word for the state: `running`, `paused` …
  package var status: String
  package var phase: Phase
  package var bytesDone: Int64
  package var bytesTotal: Int64?
  /// Bytes per second.
  package var rate: Int64?
  /// Seconds left.
  package var eta: Int64?

  package init(
    title: String, status: String, phase: Phase, bytesDone: Int64 = 0, bytesTotal: Int64? = nil, rate: Int64? = nil,
    eta: Int64? = nil
  ) {
    self.title = title
    self.status = status
    self.phase = phase
    self.bytesDone = bytesDone
    self.bytesTotal = bytesTotal
    self.rate = rate
    self.eta = eta
  }

  /// The finished part, from 0 to 1, if the total is known.
  var fraction: Double? {
    if phase == .done { return 1 }
    guard let bytesTotal, bytesTotal > 0 else { return nil }
    return min(1, max(0, Double(bytesDone) / Double(bytesTotal)))
  }

  /// ``fraction`` such as `42%`, or empty.
  package var percent: String { fraction.map { "\(Int($0 * 100))%" } ?? "" }
}
