import System
import TaskCore

extension UUID {
  /// A new version 7 UUID of this moment: for tasks and commands.
  public static func make() -> UUID {
    var generator = SystemRandomNumberGenerator()
    return make(using: &generator)
  }

  static func make(using generator: inout some RandomNumberGenerator) -> UUID {
    UUID(milliseconds: UInt64(max(0, Clocks.realtimeMicroseconds())) / 1000, using: &generator)
  }
}
