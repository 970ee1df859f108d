/// What the worker of a running task is told to do: to stop, and to hand the task back. It decides where the task goes
/// when the run ends without success; success is faster than any intent.
public enum Intent: String, Sendable, CaseIterable {
  case pause
  case cancel
}
