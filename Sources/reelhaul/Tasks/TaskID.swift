import CommandLineKit
import TaskCore
import WorkerOptions

/// Parses task ids in a command's arguments.
enum TaskID {
  static func parse(_ words: [String]) throws(UsageError) -> [UniqueID] {
    try words.map { word throws(UsageError) in
      guard let id = UniqueID(word) else {
        throw UsageError(
          "\"\(word)\" is not a task id", hint: "A task's id is a UUID; 'reelhaul list' shows the tasks.")
      }
      return id
    }
  }
}
