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
    /// Microseconds since 1970; of one without an end, see ``deadline``.
    var until: Int64
    /// The clock may be set back.
    var deadline: BootInstant?
  }

  /// A program that is to run or runs.
  private final class Run: Sendable {
    let command: CredentialCommand
    /// Changed under the lock of the state, until the program has ended.
    let waiting = Lock<[Awaited<Credential>]>([])

    init(_ command: CredentialCommand) { self.command = command }
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
      guard let entry = state.entries[name], entry.command == command, entry.until > now,
        entry.deadline.map({ .now < $0 }) ?? true, !isRefused(entry.credential)
      else { return nil }
      return entry.credential
    }
    if let found { return found }
    let printed = Awaited<Credential>()
    run(name, command, for: printed)
    return try await printed.value
  }

  /// Settles `caller` with what the run that is under way prints, or a new one. All of it happens on a thread: handlers may
  /// block those that tasks share.
  private func run(_ name: String, _ command: CredentialCommand, for caller: Awaited<Credential>) {
    let begun: Run? = state.withLock { state in
      if let run = state.runs[name], run.command == command {
        run.waiting.withLock { $0.append(caller) }
        return nil
      }
      let run = Run(command)
      run.waiting.withLock { $0.append(caller) }
      state.runs[name] = run
      return run
    }
    guard let run = begun else { return }
    let thread = Thread(ifPossible: "credential") { [self] in
      end(run, of: name, Self.read(name, command, timeout: timeout))
    }
    if let thread { return thread.detach() }
    let reason = "the system gives no thread for the command of the credential \"\(name)\""
    end(run, of: name, .failure(UnusableFile(description: reason)))
  }

  private func end(_ run: Run, of name: String, _ result: Result<Credential, UnusableFile>) {
    let kept = keep(result, name, run)
    for caller in run.waiting.withLock({ $0 }) { caller.settle(kept.mapError { $0 }) }
  }

  private func keep(
    _ result: Result<Credential, UnusableFile>, _ name: String, _ run: Run
  ) -> Result<Credential, UnusableFile> {
    let now = Clocks.realtimeMicroseconds()
    return state.withLock { state in
      if state.runs[name] === run { state.runs[name] = nil }
      guard case .success(let credential) = result else { return result }
      let until: Int64
      var deadline: BootInstant?
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
        (until, deadline) = (.max, .now + .seconds(900))
      }
      state.entries[name] = Entry(command: run.command, credential: credential, until: until, deadline: deadline)
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
