import System
import TaskCore

extension UUID {
  /// A new version 7 UUID of this moment: for tasks and commands.
  public static func make() -> UUID {
    UUID(milliseconds: Clocks.realtimeMilliseconds())
  }
}
