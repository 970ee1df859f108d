import CommandLineKit
import ReelhaulSystem

/// Runs and times other programs.
enum BenchCommandLine {
  /// Runs a program to its end. Throws if it cannot be started, or if its exit code is not 0.
  static func run(
    _ executable: String, _ arguments: [String], environment: [String: String] = [:], output: String = "/dev/null"
  ) async throws {
    var options = ChildProcess.Options()
    options.environment = environment
    options.stdout = output
    options.stderr = output
    let process: ChildProcess
    do {
      process = try ChildProcess(executable, arguments, options)
    } catch {
      throw WorkError("\(error)", hint: "The benchmarks compare with curl, sha256sum and aria2c: install them.")
    }
    let status = await process.wait()
    guard status == .exited(0) else {
      throw WorkError("\(executable) \(arguments.joined(separator: " ")): \(status)")
    }
  }

  /// Seconds of wall time.
  static func time(_ body: () async throws -> Void) async rethrows -> Double {
    let start = Clocks.boottime()
    try await body()
    return Double(Clocks.boottime() - start) / 1e9
  }
}
