import CommandLineKit
import Glibc
import ReelhaulSystem
import ReelhaulTasks
import ReelhaulTelemetry
import TaskCore
import WorkerCore
import WorkerOptions

/// A whole worker as one call. It applies commands from Kafka, claims tasks of the kinds that it has handlers for,
/// renews its lease, records the results, and drains on SIGTERM and SIGINT.
public enum ReelhaulWorker {
  /// Runs a worker until a signal stops it and it has handed its tasks back.
  ///
  /// It is configured like `reelhaul worker`: by the environment (`REELHAUL_KAFKA`, `REELHAUL_POSTGRES`,
  /// `REELHAUL_STORAGE`, …) and by the file that `REELHAUL_CONFIG` names.
  ///
  /// - Parameters:
  ///   - handlers: One handler for each kind. Two handlers for one kind are an error.
  ///   - middleware: Wraps every run of `handlers`; the first one is the outermost.
  ///   - builtIn: Whether the worker also carries out downloads, uploads, copies and deletes.
  ///   - environment: Replaces the environment of the process for the worker's settings. AWS's variables, and programs
  ///     that are started, have that of the process.
  ///
  /// Throws ``WorkerError`` if the configuration or a handler's policy is wrong, if two handlers have one kind, if the
  /// database belongs to another fleet or has a newer schema, if a client of Kafka is lost for good, or if the drain was
  /// cut short. It waits, and its log tells why, while Kafka or PostgreSQL cannot be reached or refuses the login (a wrong
  /// password too), and while topics or the schema are missing.
  /// End the process then: SIGTERM and SIGINT are still caught, and calls may hang that nobody waits for.
  public static func run(
    handlers: [any TaskHandler], middleware: [TaskMiddleware] = [], builtIn: Bool = true,
    environment: [String: String]? = nil
  ) async throws {
    // Must come before any write: a closed connection must be an error of the write, not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    ChildProcess.keepExits()
    StandardStream.openAll()
    let configuration: WorkerConfiguration
    let level: LogLevel
    do {
      if environment == nil { try ProcessEnvironment.check() }
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
      throw WorkerError(code: code, message: "the worker ended with exit code \(code); its log has the reason")
    }
  }

  private static func adapter(
    _ handler: some TaskHandler, _ middleware: [TaskMiddleware], _ services: HandlerServices
  ) -> any KindHandler {
    HandlerAdapter(handler, middleware: middleware, roots: services.roots, log: services.log)
  }

  /// Throws if no worker would start with this handler.
  package static func check<Handler: TaskHandler>(_ handler: Handler) throws {
    for name in [Handler.kind] + Handler.aliases {
      guard TaskKind.isName(name) else {
        throw WorkerError(
          code: WorkerProcess.misconfigured,
          message:
            "the kind \"\(name)\" of \(type(of: handler)) must be 1 to 32 letters, digits, \".\", \"_\" or \"-\"")
      }
    }
    if let complaint = handler.policy.complaint {
      throw WorkerError(
        code: WorkerProcess.misconfigured, message: "the policy of \(type(of: handler)) is out of range: \(complaint)")
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
  /// The exit code that `reelhaul worker` would have: 2 for an error for which waiting does not help, 1 if the drain
  /// was cut short or a client of Kafka is lost.
  public var code: Int32
  public var message: String

  public var description: String { message }
}
