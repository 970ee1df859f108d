import System
import TaskCore

extension UUID {
  /// A new identifier of this moment.
  package static func version7() -> UUID {
    var random = SystemRandomNumberGenerator()
    return UUID(milliseconds: UInt64(max(0, Clocks.realtimeMicroseconds() / 1000)), using: &random)
  }
}
