import Glibc
import ReelhaulSystem
import TestKit
import Testing

/// The live list of `watch` on a terminal of its own.
@Suite struct WatchScreenTests {
  @Test("the terminal is as it was, whatever key or signal ends the list", arguments: [0, SIGINT, SIGTERM, SIGHUP])
  func theTerminalComesBack(_ signal: Int32) async throws {
    let fleet = try await TestFleet.start(workers: 0)
    let terminal = try PseudoTerminal()
    let before = terminal.flags
    let watch = try terminal.run(TestFleet.binary, ["watch"], in: fleet)
    try await eventually("it is shown") { terminal.output.contains("j k move") }
    #expect(terminal.flags != before)
    // Ctrl-\ is no signal here: the program would end without a word. The key after it tells that both were read.
    terminal.type("\u{1C}s")
    try await eventually("the next group is shown") { terminal.output.contains("[2 running]") }
    if signal == 0 { terminal.type("q") } else { try watch.kill(signal) }
    // The number is that of the signal, as setsid tells it.
    #expect(await watch.process.wait() == .exited(signal))
    #expect(terminal.flags == before)
    // What a program wrote at its end reaches this side a little later.
    try await eventually("its screen is left") { terminal.output.hasSuffix("\u{1B}[?1049l") }
    await fleet.stop()
  }
}

/// A terminal that a program runs on, and the end from which a person types.
private final class PseudoTerminal {
  private let directory: TemporaryDirectory
  private let ours: Int32
  /// Held open, because the settings of a terminal that nobody has open are not kept.
  private let theirs: Int32
  private let name: String
  private var text: [UInt8] = []

  init() throws {
    directory = try TemporaryDirectory()
    ours = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
    // Swift does not see TIOCSPTLCK and TIOCGPTN.
    var (lock, number) = (Int32(0), Int32(-1))
    guard ours >= 0, ioctl(ours, 0x4004_5431, &lock) == 0, ioctl(ours, 0x8004_5430, &number) == 0 else {
      throw SystemError.last("open a terminal")
    }
    name = "/dev/pts/\(number)"
    theirs = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
    var size = winsize(ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0)
    guard theirs >= 0, ioctl(ours, UInt(TIOCSWINSZ), &size) == 0 else { throw SystemError.last("open \(name)") }
  }

  deinit {
    close(theirs)
    close(ours)
  }

  /// Runs a program as the leader of a session whose terminal this is.
  func run(
    _ program: String, _ words: [String], in fleet: TestFleet
  ) throws -> (process: ChildProcess, kill: (Int32) throws -> Void) {
    var options = ChildProcess.Options()
    options.environment = fleet.environment.merging(["TERM": "xterm", "LANG": "C.UTF-8"]) { $1 }
    options.signalOnParentDeath = SIGKILL
    let id = "\(directory.path)/id"
    let leader = "setsid --wait --ctty bash -c 'echo $$ >\(id); exec \"$@\"' - \"$@\""
    let script = "exec \(leader) <\(name) >\(name) 2>/dev/null"
    let process = try ChildProcess("bash", ["-c", script, "-", program] + words, options)
    return (
      process,
      { signal in
        let text = String(decoding: try TestFleet.contents(id), as: UTF8.self)
        kill(try #require(Int32(text.dropLast())), signal)
      }
    )
  }

  func type(_ keys: String) {
    var keys = keys
    keys.withUTF8 { _ = write(ours, $0.baseAddress, $0.count) }
  }

  /// What the program has written until now.
  var output: String {
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    while case let count = read(ours, &bytes, bytes.count), count > 0 { text += bytes[..<count] }
    return String(decoding: text, as: UTF8.self)
  }

  /// How lines are read: whole or key by key, and whether what is typed is shown.
  var flags: tcflag_t {
    var settings = termios()
    tcgetattr(theirs, &settings)
    return settings.c_lflag
  }
}
