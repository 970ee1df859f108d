import ReelhaulCodec
import ReelhaulSystem
import TaskCore

/// Runs the programs that print credentials, and keeps what they printed.
///
/// A program runs once for all tasks that wait for its credential, and again 5 minutes before the credential ends, or
/// after 15 minutes if it does not say when.
final class CredentialCommands: Sendable {
  private struct Entry {
    var command: CredentialCommand
    var credential: Credential
    /// Microseconds since 1970.
    var until: Int64
  }

  private struct Run {
    var command: CredentialCommand
    var task: Task<Credential, any Error>
  }

  private struct State {
    var entries: [String: Entry] = [:]
    var runs: [String: Run] = [:]
  }

  private static let outputLimit = 64 << 10
  private let state = Lock(State())
  private let timeout: Duration

  init(timeout: Duration) {
    self.timeout = timeout
  }

  /// The credential that a command prints. Throws ``UnusableFile``, or `CancellationError` if the caller is canceled:
  /// others may wait for the same program, so it goes on.
  ///
  /// - Parameter isRefused: Whether a server has refused this credential. Then it is not given again from memory.
  func credential(
    _ name: String, of command: CredentialCommand, isRefused: (Credential) -> Bool
  ) async throws -> Credential {
    let now = Clocks.realtimeMicroseconds()
    let found: Credential? = state.withLock { state in
      guard let entry = state.entries[name], entry.command == command, entry.until > now, !isRefused(entry.credential)
      else { return nil }
      return entry.credential
    }
    if let found { return found }
    let printed = Awaited<Credential>()
    let run = run(name, command)
    Task { printed.settle(await run.result) }
    return try await printed.value
  }

  /// The run that is under way, or a new one.
  private func run(_ name: String, _ command: CredentialCommand) -> Task<Credential, any Error> {
    state.withLock { state in
      if let run = state.runs[name], run.command == command { return run.task }
      let task = Task { [timeout] in
        let result: Result<Credential, UnusableFile> = await withCheckedContinuation { continuation in
          let thread = Thread(ifPossible: "credential") {
            continuation.resume(returning: Self.read(name, command, timeout: timeout))
          }
          guard let thread else {
            let reason = "the system gives no thread for the command of the credential \"\(name)\""
            return continuation.resume(returning: .failure(UnusableFile(description: reason)))
          }
          thread.detach()
        }
        return try self.keep(result, name, command).get()
      }
      state.runs[name] = Run(command: command, task: task)
      return task
    }
  }

  private func keep(
    _ result: Result<Credential, UnusableFile>, _ name: String, _ command: CredentialCommand
  ) -> Result<Credential, UnusableFile> {
    let now = Clocks.realtimeMicroseconds()
    return state.withLock { state in
      if state.runs[name]?.command == command { state.runs[name] = nil }
      guard case .success(let credential) = result else { return result }
      let until: Int64
      if let end = credential.expiresAt?.microseconds {
        guard end > now else {
          return .failure(
            UnusableFile(
              description: """
                the command of the credential "\(name)" printed one that has already expired, or the worker's clock is wrong
                """))
        }
        // One that lasts only minutes is kept too, but not for long: every run of the program costs others something.
        until = max(end - 300_000_000, min(end, now + 10_000_000))
      } else {
        until = now + 900_000_000
      }
      state.entries[name] = Entry(command: command, credential: credential, until: until)
      return result
    }
  }

  /// Runs the program. Blocks.
  private static func read(
    _ name: String, _ command: CredentialCommand, timeout: Duration
  ) -> Result<Credential, UnusableFile> {
    func failed(_ reason: String) -> Result<Credential, UnusableFile> {
      .failure(UnusableFile(description: "the command of the credential \"\(name)\" \(reason)"))
    }
    let output: ProgramOutput
    do {
      output = try ProgramOutput.run(
        command.words[0], Array(command.words.dropFirst()), withholding: "REELHAUL_", limit: outputLimit,
        timeout: timeout)
    } catch ProgramOutput.Stop.tooMuchOutput {
      return failed("printed more than \(outputLimit) bytes")
    } catch ProgramOutput.Stop.tooLate {
      return failed("did not end within \(timeout.milliseconds / 1000) s")
    } catch let error as SystemError {
      return failed("cannot be started: \(error.reason)")
    } catch {
      return failed("cannot be run: \(error)")
    }
    guard output.status == .exited(0) else {
      let said = SecretRedaction.line(of: output, words: command.words)
      return failed("ended with \(output.status)\(said.isEmpty ? "" : ": \(said)")")
    }
    do throws(DecodingFailure) {
      return .success(try Credential.printed(output.output, by: command))
    } catch {
      return failed("printed something else than a credential: \(String("\(error)".prefix(300)))")
    }
  }
}
