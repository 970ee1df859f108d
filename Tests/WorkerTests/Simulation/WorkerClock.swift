import ReelhaulSystem
import WorkerCore

/// The boot clock of one worker, which is not the world's: it began at another time, runs slow or fast, and while its
/// process is frozen it may stand still or jump ahead, as a virtual machine's does.
struct WorkerClock {
  /// The slowest and the fastest one, in seconds of its own for one of the world. A lease leaves room for the slowest:
  /// two thirds of it last less than the whole, the time included that ``standstill`` may take.
  static let rates = 0.85...1.25
  /// For how long it may stand still, once in ``pause``.
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

  /// How long the world takes until it is `time` here.
  func wait(until time: BootInstant, from world: BootInstant) -> Duration {
    // Rounded up: woken a nanosecond early, a worker would find nothing to do, for ever.
    max(.zero, self.time(at: world).duration(to: time)) / rate + .nanoseconds(2)
  }

  mutating func jump(by duration: Duration) {
    ahead = ahead + duration
  }

  /// It has not gone on for the last `duration` of the world's, of which so much counts as the lease has room for.
  mutating func standStill(for duration: Duration, at world: BootInstant) {
    if let stoodStill, stoodStill.duration(to: world) < Self.pause { return }
    stoodStill = world
    ahead = ahead - min(duration, Self.standstill) * rate
  }
}
