import Glibc
import ReelhaulSystem
import Testing

@Suite struct ChildProcessTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  /// The output of a shell script that runs with `options`.
  private func output(_ script: String, _ options: ChildProcess.Options = .init()) async throws -> String {
    var options = options
    options.stdout = "\(directory.path)/out"
    let status = await (try ChildProcess("sh", ["-c", script], options)).wait()
    #expect(status == .exited(0))
    let file = try FileDescriptor.open("\(directory.path)/out", O_RDONLY)
    var bytes = [UInt8](repeating: 0, count: Int(try file.size()))
    _ = try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 0) }
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test("a child gets the merged environment and the working directory")
  func theEnvironmentIsMergedAndTheDirectorySet() async throws {
    var options = ChildProcess.Options()
    options.environment = ["REELHAUL_TEST": "a b"]
    options.workingDirectory = "/"
    #expect(try await output("echo \"$REELHAUL_TEST\" $PWD ${PATH:+path}", options) == "a b / path\n")
  }

  @Test("the exit status tells the exit code or the signal")
  func theExitStatusTellsCodeAndSignal() async throws {
    #expect(await (try ChildProcess("sh", ["-c", "exit 7"])).wait() == .exited(7))
    let sleeper = try ChildProcess("sleep", ["1000"])
    #expect(sleeper.status == nil)
    sleeper.kill(SIGKILL)
    #expect(await sleeper.wait() == .signaled(SIGKILL))
    sleeper.kill(SIGKILL)
  }

  @Test("starting a program, or in a directory, that does not exist throws an error")
  func aMissingProgramIsAnError() throws {
    #expect(throws: SystemError(errno: ENOENT, operation: "start no-such-program")) {
      _ = try ChildProcess("no-such-program")
    }
    var options = ChildProcess.Options()
    options.workingDirectory = "/no-such-directory"
    #expect(throws: SystemError(errno: ENOENT, operation: "start true")) {
      _ = try ChildProcess("true", [], options)
    }
  }

  @Test("a child blocks no signal, leads its own group, and is of the user that was asked for")
  func aChildIsItsOwn() async throws {
    var options = ChildProcess.Options()
    let isRoot = getuid() == 0
    if isRoot { options.user = (65534, 65534) }
    // A shell blocks signals while it starts a program, so it becomes the program.
    let text = try await output("exec grep -E '^(Pid|NSpgid|SigBlk|Groups|Uid|Gid)' /proc/self/status", options)
    let lines = text.split(separator: "\n").map { $0.split(whereSeparator: \.isWhitespace).map(String.init) }
    #expect(lines.contains(["SigBlk:", "0000000000000000"]))
    let pid = lines.first { $0.first == "Pid:" }
    #expect(pid != nil && lines.first { $0.first == "NSpgid:" }?.last == pid?.last)
    if isRoot {
      #expect(lines.contains(["Uid:"] + Array(repeating: "65534", count: 4)))
      #expect(lines.contains(["Gid:"] + Array(repeating: "65534", count: 4)))
      #expect(lines.contains(["Groups:"]))
    }
  }

  @Test("a child gets no descriptor beside its standard streams")
  func aChildHasNoOthersDescriptors() async throws {
    let leaked = dup(STDIN_FILENO)
    defer { close(leaked) }
    #expect(fcntl(leaked, F_GETFD) & FD_CLOEXEC == 0)
    // The last one is that of `ls` for the directory.
    #expect(try await output("exec ls /proc/self/fd") == "0\n1\n2\n3\n")
  }

  @Test("a child starts with default signal handlers, even if this process ignores a signal")
  func theDefaultSignalHandlersAreBack() async throws {
    signal(SIGPIPE, SIG_IGN)
    let child = try ChildProcess("sh", ["-c", "kill -s PIPE $$; exit 0"])
    #expect(await child.wait() == .signaled(SIGPIPE))
  }

  @Test("a signal that comes while the output of a program is read is no error, and nothing of the output is lost")
  func signalsWhileReading() throws {
    signal(SIGURG) { _ in }
    defer { signal(SIGURG, SIG_DFL) }
    let (reader, result) = (Lock<pthread_t?>(nil), Lock<ProgramOutput?>(nil))
    let isDone = Lock(false)
    let thread = Thread(name: "reader") {
      var urgent = sigset_t()
      sigemptyset(&urgent)
      sigaddset(&urgent, SIGURG)
      pthread_sigmask(SIG_UNBLOCK, &urgent, nil)
      reader.withLock { $0 = pthread_self() }
      let script = "for n in 1 2 3 4 5; do echo $n; sleep 0.04; done; exit 3"
      let output = try? ProgramOutput.run("sh", ["-c", script], limit: 100, timeout: .seconds(60))
      reader.withLock { $0 = nil }
      result.withLock { $0 = output }
      isDone.withLock { $0 = true }
    }
    while !isDone.withLock({ $0 }) {
      // The thread cannot end meanwhile.
      reader.withLock { if let id = $0 { _ = pthread_kill(id, SIGURG) } }
      usleep(500)
    }
    thread.join()
    let output = try #require(result.withLock { $0 })
    #expect(String(decoding: output.output, as: UTF8.self) == "1\n2\n3\n4\n5\n" && output.status == .exited(3))
  }
}
