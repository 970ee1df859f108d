// The types that a producer needs. The rest of TaskCore is internal to Reelhaul.
@_exported import struct TaskCore.Expectation
@_exported import struct TaskCore.HeaderField
@_exported import enum TaskCore.IfExists
@_exported import struct TaskCore.InvalidTask
@_exported import struct TaskCore.RetryPolicy
@_exported import struct TaskCore.TaskKind
@_exported import struct TaskCore.TaskSpec
@_exported import struct TaskCore.Timestamp
@_exported import struct TaskCore.UniqueID
