@_exported import ReelhaulTasks
