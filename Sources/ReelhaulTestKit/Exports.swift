@_exported import ReelhaulWorker

@_exported import struct TaskCore.TaskEvent
@_exported import struct TaskCore.TaskFailure
@_exported import enum TaskCore.TaskState
