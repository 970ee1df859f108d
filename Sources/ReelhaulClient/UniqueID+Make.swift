import ReelhaulSystem
import TaskCore

extension UniqueID {
  /// A new version 7 UUID of this moment: for tasks and commands.
  public static func make() -> UniqueID {
    UniqueID(milliseconds: Clocks.realtimeMilliseconds())
  }
}
