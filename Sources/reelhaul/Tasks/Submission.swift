import CommandLineKit
import ReelhaulClient
import ReelhaulMessages
import TaskAdvice
import TaskCore
import TaskStore

/// A task on its way from the command line to the fleet; with `--wait`, to its end.
struct Submission: Sendable {
  private let spec: TaskSpec
  private let context: Context

  init(_ spec: TaskSpec, _ context: Context) {
    self.spec = spec.withTrace
    var context = context
    // Nothing is printed before.
    context.console.output.lastWords = "Task \(spec.id) was sent."
    self.context = context
  }

  func run() async throws -> ExitCode {
    guard context.arguments[flag: .wait] else { return try await send() }
    return try await Fleet.withStore(context) { store in
      try await put()
      if !context.wantsJSON { context.output.line("\(spec.id)") }
      do {
        return try await follow(in: store, toItsEnd: true)
      } catch {
        if context.wantsJSON { context.note("Task \(spec.id) was sent.") }
        throw error
      }
    }
  }

  /// Returns once Kafka has the task. It may have it without an answer in time, or when the user interrupts: whoever
  /// submits it again would otherwise make a second one.
  private func put() async throws {
    // What was given relative to now is another time then.
    let time = spec.notBefore.map { " and --not-before \($0)" } ?? ""
    let sentence = "Task \(spec.id) may have been sent all the same: with --id \(spec.id)\(time) it is not made twice."
    let stop = await StopSignal.telling(context) { sentence }
    do {
      try await Fleet.send([.submit(spec)], context)
      await stop.close()
    } catch let error as ReelhaulClientError where error.isRetryable {
      await stop.close()
      var failure = CommandFailure(error)
      failure.hint = failure.hint.map { "\(sentence)\n\($0)" } ?? sentence
      throw failure
    }
  }

  private func send() async throws -> ExitCode {
    try await put()
    guard context.wantsJSON else {
      context.output.line("\(spec.id)")
      return .done
    }
    do {
      return try await Fleet.withStore(context) { store in
        try await follow(in: store, toItsEnd: false)
      }
    } catch let failure as CommandFailure {
      throw failure
    } catch {
      // The task was sent. Only its result is unknown.
      context.note("The task was sent, and is printed as it was sent, because \(CommandFailure(error).message).")
      context.output.document { TaskSpecJSON.write(spec, to: &$0) }
      return .done
    }
  }

  /// Follows the task until it is stored or has ended, and prints its document if asked to.
  private func follow(in store: any TaskReader & FleetReader, toItsEnd: Bool) async throws -> ExitCode {
    let tasks = try await TaskWatch(store, context, isQuiet: context.wantsJSON)
      .run([spec.id], until: { !toItsEnd || $0.state.isFinal || !$0.spec.differences(from: spec).isEmpty })
    if let other = tasks.documents.first?.spec.differences(from: spec), !other.isEmpty {
      throw CommandFailure(
        .failed, "task \(spec.id) already exists and is different: \(other.joined(separator: ", "))",
        hint: "It is not changed: 'reelhaul show \(spec.id)'. Without --id a new task gets its own id.")
    }
    if context.wantsJSON {
      for report in try await TaskReport.of(tasks.documents, in: store) {
        context.output.document { report.write(to: &$0) }
      }
    }
    return tasks.exit(context) { $0.state != .succeeded && (toItsEnd || $0.state.isFinal) }
  }
}
