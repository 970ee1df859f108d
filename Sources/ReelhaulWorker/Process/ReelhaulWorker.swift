import CommandLineKit
import Glibc
import ReelhaulSystem
import ReelhaulTasks
import ReelhaulTelemetry
import TaskCore
import WorkerCore
import WorkerOptions

/// A whole worker as one call: it takes commands from Kafka, claims tasks of the kinds it has handlers for, keeps their
/// lease, records what they do, and drains on SIGTERM and SIGINT.
public enum ReelhaulWorker {
  /// Runs a worker until it is told to stop and has handed its tasks back.
  ///
  /// It is configured as `reelhaul worker` is: by the environment (`REELHAUL_KAFKA`, `REELHAUL_POSTGRES`,
  /// `REELHAUL_STORAGE`, …) and the file that `REELHAUL_CONFIG` names.
  ///
  /// - Parameters:
  ///   - handlers: one for each kind. Two for one kind are refused.
  ///   - middleware: wraps every run of `handlers`, the first outermost.
  ///   - builtIn: whether the worker also carries out downloads and deletes.
  ///   - environment: in the place of the process's own.
  ///
  /// Throws ``WorkerError`` where the configuration, Kafka or the database refuses the worker, two handlers have one
  /// kind, or the drain was cut short.
  public static func run(
    handlers: [any TaskHandler], middleware: [TaskMiddleware] = [], builtIn: Bool = true,
    environment: [String: String]? = nil
  ) async throws {
    // Before anything writes: a peer that hangs up must be an error of that write, not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    let configuration: WorkerConfiguration
    let level: LogLevel
    do {
      let arguments = try arguments(environment ?? ProcessEnvironment.all)
      configuration = try WorkerConfiguration(arguments)
      level = arguments[.logLevel].flatMap { LogLevel(name: $0) } ?? .info
    } catch let error as UsageError {
      throw WorkerError(
        code: WorkerProcess.misconfigured,
        message: [error.message, error.hint].compactMap(\.self).joined(separator: "\n"))
    } catch {
      throw WorkerError(code: WorkerProcess.misconfigured, message: "\(error)")
    }
    let log = Logger(level: level)
    defer { log.close() }
    let kinds = WorkerKinds(builtIn: builtIn) { services in
      handlers.map { adapter($0, middleware, services) }
    }
    for handler in handlers { try check(handler) }
    let code: Int32
    do throws(DuplicateKind) {
      code = try await WorkerProcess.run(configuration, kinds: kinds, log: log)
    } catch {
      throw WorkerError(code: WorkerProcess.misconfigured, message: "\(error)")
    }
    guard code == 0 else {
      throw WorkerError(code: code, message: "the worker ended with \(code): its log says why")
    }
  }

  private static func adapter(
    _ handler: some TaskHandler, _ middleware: [TaskMiddleware], _ services: HandlerServices
  ) -> any KindHandler {
    HandlerAdapter(handler, middleware: middleware, roots: services.roots, log: services.log)
  }

  private static func check<Handler: TaskHandler>(_ handler: Handler) throws {
    for name in [Handler.kind] + Handler.aliases {
      guard TaskKind.isName(name) else {
        throw WorkerError(
          code: WorkerProcess.misconfigured,
          message:
            "\"\(name)\" of \(type(of: handler)) is no name of a kind: 1 to 32 letters, digits, \".\", \"_\" or \"-\"")
      }
    }
    guard (1...100).contains(handler.policy.maxAttempts), handler.policy.concurrency ?? 0 >= 0 else {
      throw WorkerError(
        code: WorkerProcess.misconfigured,
        message: "the policy of \(type(of: handler)) is out of range: maxAttempts is 1 to 100, concurrency not negative"
      )
    }
  }

  private static func arguments(_ environment: [String: String]) throws -> Arguments {
    let settings = try SettingsLoader.load([], environment: environment)
    let spec = CommandSpec(
      name: "worker", summary: "Run one worker", options: OptionSpec.working + OptionSpec.producing)
    guard case .run(let arguments) = try CommandParser(spec, settings: settings).parse([]) else {
      throw UsageError("the worker's settings cannot be read")
    }
    return arguments
  }
}

/// Why a worker could not start, or did not end well.
public struct WorkerError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The exit code that `reelhaul worker` would have: 2 for a mistake that no waiting mends, 1 where the drain was cut
  /// short.
  public var code: Int32
  public var message: String

  public var description: String { message }
}
