@_exported import ReelhaulTasks

@_exported import struct TaskCore.TaskFailure
