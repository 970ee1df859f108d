import CommandLineKit
import TaskCore

/// Task ids among a command's words.
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
