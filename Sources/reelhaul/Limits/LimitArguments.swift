import CommandLineKit
import ReelhaulCodec
import TaskCore
import TaskStore
import WorkerOptions

/// Checks the arguments of `limit` and `weight`.
enum LimitArguments {
  /// The bucket, with its name in the store.
  static func bucket(_ word: String, _ name: String?) throws(UsageError) -> (LimitScope, String) {
    guard let scope = LimitScope(rawValue: word) else { throw UsageError("there is no scope \"\(word)\"") }
    guard name != nil || scope == .total else {
      throw UsageError("the name of the \(word) is missing", hint: "Write it as 'reelhaul limit \(word) NAME LIMIT'.")
    }
    do throws(InvalidLimit) {
      return (scope, try scope.checked(name ?? ""))
    } catch {
      throw UsageError(error.message)
    }
  }

  /// A doubt about a name that is accepted anyway; nil if there is none, or if no worker is `live`.
  static func doubt(_ scope: LimitScope, _ name: String, live: [WorkerDocument], _ backlog: Backlog) -> String? {
    let known: Set<String>
    switch scope {
    case .kind: known = live.reduce(into: Set(backlog.kinds.map(\.rawValue))) { $0.formUnion($1.kinds.map(\.rawValue)) }
    case .storage: known = live.reduce(into: backlog.storages) { $0.formUnion($1.volumes.keys) }
    case .total, .queue, .host: return nil
    }
    guard !live.isEmpty, !known.contains(name) else { return nil }
    let near = Suggestion.nearest(to: name, in: known.sorted()).map { ": did you mean \($0)?" } ?? "."
    return "No live worker has the \(scope.rawValue) \(name), and no task waits for it\(near)"
  }

  /// Nil means no limit.
  static func limit(_ text: String) throws(UsageError) -> Int? {
    if text == "none" { return nil }
    guard text.allSatisfy({ $0.isASCII && $0.isNumber }), let limit = Int(text),
      LimitUse.limits.contains(limit)
    else {
      throw UsageError("LIMIT must be a whole number from 0 to \(LimitUse.limits.upperBound), or none, not \"\(text)\"")
    }
    return limit
  }

  static func weight(_ text: String) throws(UsageError) -> Double {
    guard text.allSatisfy({ $0.isASCII && $0.isNumber || $0 == "." }), let weight = Double(text),
      LimitUse.weights.contains(weight)
    else {
      throw UsageError(
        "WEIGHT must be a number from \(LimitUse.weights.lowerBound) to 1000, such as 0.5, not \"\(text)\"")
    }
    return weight
  }
}
