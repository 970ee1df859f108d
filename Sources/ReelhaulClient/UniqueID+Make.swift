import ReelhaulSystem
import TaskCore

extension UniqueID {
  /// A new version 7 UUID with the present time, for tasks and commands.
  public static func make() -> UniqueID {
    UniqueID(milliseconds: Clocks.realtimeMilliseconds())
  }
}
