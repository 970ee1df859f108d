import CReelhaulSystem
import Glibc

package enum ExitStatus: Hashable, Sendable, CustomStringConvertible {
  case exited(Int32)
  case signaled(Int32)

  package var description: String {
    switch self {
    case .exited(let code): "exit \(code)"
    case .signaled(let signal): "signal \(signal)"
    }
  }
}

/// A child process. It is reaped even if nobody waits for it.
package final class ChildProcess: Sendable {
  package struct Options: Sendable {
    /// `KEY=VALUE` pairs that are added to this process's environment, or replace its values.
    package var environment: [String: String] = [:]
    /// Variables of this process whose names begin like this are not handed on; nil hands on all.
    package var withholding: String?
    package var workingDirectory: String?
    /// The user and group to run as. Only root can set them.
    package var user: (uid: uid_t, gid: gid_t)?
    /// Files that stdout and stderr are appended to; nil inherits. Both may be the same path.
    package var stdout: String?
    package var stderr: String?
    /// The signal that the child receives when the thread that spawned it ends; nil sends none.
    package var signalOnParentDeath: Int32? = SIGTERM

    package init() {}
  }

  package let pid: pid_t
  private let exit = Condition<ExitStatus?>(nil)
  private let waiters = Lock<[CheckedContinuation<ExitStatus, Never>]>([])

  /// Whoever started this process may have it ignore SIGCHLD, and then the system tells no exit status of a child. A handler
  /// stays.
  package static func keepExits() {
    if LoopSignal.isIgnored(SIGCHLD) { signal(SIGCHLD, SIG_DFL) }
  }

  /// Starts `executable`, a path or a name looked up in PATH.
  package init(_ executable: String, _ arguments: [String] = [], _ options: Options = Options()) throws(SystemError) {
    let inherited = ProcessEnvironment.all.filter { name, _ in
      options.withholding.map { !name.hasPrefix($0) } ?? true
    }
    let environment = inherited.merging(options.environment) { _, new in new }
    let argv = CStrings([executable] + arguments)
    let envp = CStrings(environment.map { "\($0.key)=\($0.value)" })
    var request = rh_spawn()
    request.uid = options.user?.uid ?? uid_t.max
    request.gid = options.user?.gid ?? gid_t.max
    request.death_signal = options.signalOnParentDeath ?? 0
    let texts = CStrings([executable, options.workingDirectory, options.stdout, options.stderr].map { $0 ?? "" })
    request.executable = UnsafePointer(texts.pointers[0])
    request.directory = options.workingDirectory == nil ? nil : UnsafePointer(texts.pointers[1])
    request.out = options.stdout == nil ? nil : UnsafePointer(texts.pointers[2])
    request.err = options.stderr == nil ? nil : UnsafePointer(texts.pointers[3])
    request.argv = UnsafePointer(argv.pointers.baseAddress)
    request.envp = UnsafePointer(envp.pointers.baseAddress)
    // The parent-death signal depends on the spawning *thread*. So one thread spawns all processes and lives as long
    // as this process.
    let result = Self.spawner.spawn(request)
    withExtendedLifetime((argv, envp, texts)) {}
    guard result > 0 else { throw SystemError(errno: -result, operation: "start \(executable)") }
    pid = result
    let pid = result
    let waiting = Thread(ifPossible: "wait-\(pid)") { [exit, waiters] in
      var (status, reaped): (Int32, pid_t) = (0, 0)
      repeat { reaped = waitpid(pid, &status, 0) } while reaped < 0 && errno == EINTR
      // Somebody else has reaped it, or the system: see ``keepExits()``. What nobody knows is no success.
      if reaped < 0 { status = 127 << 8 }
      let signal = status & 0x7f
      let ended: ExitStatus = signal == 0 ? .exited((status >> 8) & 0xff) : .signaled(signal)
      let resumed = waiters.withLock { waiters in
        exit.withLock { $0 = ended }
        defer { waiters = [] }
        return waiters
      }
      exit.broadcast()
      for waiter in resumed { waiter.resume(returning: ended) }
    }
    guard let waiting else {
      _ = Glibc.kill(-pid, SIGKILL)
      while waitpid(pid, nil, 0) < 0, errno == EINTR {}
      throw SystemError(errno: EAGAIN, operation: "start a thread for \(executable)")
    }
    waiting.detach()
  }

  /// How the process ended, or nil while it runs.
  package var status: ExitStatus? { exit.withLock { $0 } }

  package func wait() async -> ExitStatus {
    await withCheckedContinuation { continuation in
      let ended = waiters.withLock { waiters in
        let ended = status
        if ended == nil { waiters.append(continuation) }
        return ended
      }
      if let ended { continuation.resume(returning: ended) }
    }
  }

  /// Blocks the calling thread until the process has ended.
  package func waitBlocking() -> ExitStatus {
    exit.wait(until: { $0 != nil }, then: { $0 ?? .exited(0) })
  }

  /// Sends a signal, unless the child has already ended.
  package func kill(_ signal: Int32) {
    waiters.withLock { _ in
      if status == nil { _ = Glibc.kill(pid, signal) }
    }
  }

  /// Sends a signal to the child and to the processes that it has started, unless the child has already ended.
  package func killGroup(_ signal: Int32) {
    waiters.withLock { _ in
      if status == nil { _ = Glibc.kill(-pid, signal) }
    }
  }

  private static let spawner = Spawner()
}

/// The thread that forks, because parent-death signals are bound to the forking thread.
private final class Spawner: Sendable {
  // @unchecked: the call of `spawn` waits for the answer, so the pointers stay valid until the job is done.
  private struct Job: @unchecked Sendable {
    let request: rh_spawn
    let answer: Condition<Int32?>
  }

  private let jobs = Condition<[Job]>([])

  init() {
    Thread(name: "spawner") { [jobs] in
      while true {
        let job = jobs.wait(until: { !$0.isEmpty }, then: { $0.removeFirst() })
        var request = job.request
        let pid = rh_spawn_process(&request)
        job.answer.withLock { $0 = pid }
        job.answer.broadcast()
      }
    }.detach()
  }

  func spawn(_ request: rh_spawn) -> Int32 {
    let answer = Condition<Int32?>(nil)
    jobs.withLock { $0.append(Job(request: request, answer: answer)) }
    jobs.signal()
    return answer.wait(until: { $0 != nil }, then: { $0 ?? -EINVAL })
  }
}

/// A NULL-terminated array of C strings.
private final class CStrings {
  let pointers: UnsafeMutableBufferPointer<UnsafeMutablePointer<CChar>?>

  init(_ texts: [String]) {
    pointers = .allocate(capacity: texts.count + 1)
    _ = pointers.initialize(from: texts.map { strdup($0) } + [nil])
  }

  deinit {
    for text in pointers { free(text) }
    pointers.deallocate()
  }
}
