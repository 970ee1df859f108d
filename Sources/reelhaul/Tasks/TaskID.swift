import CommandLineKit
import TaskCore
import WorkerOptions

/// A task as the command line names it: by its id, or by the last digits of the id.
enum TaskID: Hashable {
  case whole(UniqueID)
  case ending(IDEnding)

  init?(_ word: String) {
    if let id = UniqueID(word) {
      self = .whole(id)
    } else if let ending = IDEnding(word) {
      self = .ending(ending)
    } else {
      return nil
    }
  }

  static func parse(_ words: [String]) throws(UsageError) -> [TaskID] {
    try words.map { word throws(UsageError) in
      guard let id = TaskID(word) else {
        throw UsageError(
          "\"\(word)\" is not a task id",
          hint: "A task's id is a UUID; its last \(IDEnding.least) digits or more are enough. "
            + "'reelhaul list' shows the tasks.")
      }
      return id
    }
  }
}
