import ReelhaulSystem
import WorkerCore

/// The boot clock of one worker. It differs from the world's clock: it began at another time and runs slower or faster.
/// While its process is frozen, it may stand still or jump ahead, like the clock of a virtual machine.
struct WorkerClock {
  /// The slowest and the fastest rate, in seconds of this clock per second of the world. A lease tolerates the slowest:
  /// two thirds of the lease on this clock, plus ``standstill``, are shorter than the whole lease.
  static let rates = 0.85...1.25
  /// How long the clock may stand still, once in ``pause``.
  static let standstill = Duration.milliseconds(1500)
  static let pause = Duration.seconds(30)

  private let rate: Double
  private var ahead: Duration
  private var stoodStill: BootInstant?

  init(rate: Double, ahead: Duration) {
    self.rate = rate
    self.ahead = ahead
  }

  func time(at world: BootInstant) -> BootInstant {
    BootInstant(nanoseconds: Int64(Double(world.nanoseconds) * rate)) + ahead
  }

  /// How long it takes in the world until this clock shows `time`.
  func wait(until time: BootInstant, from world: BootInstant) -> Duration {
    // Rounded up, because a worker that wakes a nanosecond early would find nothing to do, for ever.
    max(.zero, self.time(at: world).duration(to: time)) / rate + .nanoseconds(2)
  }

  mutating func jump(by duration: Duration) {
    ahead = ahead + duration
  }

  /// The clock did not advance during the last `duration` of the world's time. Only as much of it counts as the lease
  /// can tolerate.
  mutating func standStill(for duration: Duration, at world: BootInstant) {
    if let stoodStill, stoodStill.duration(to: world) < Self.pause { return }
    stoodStill = world
    ahead = ahead - min(duration, Self.standstill) * rate
  }
}
