import CommandLineKit
import ReelhaulSystem

/// Other programs, run and timed.
enum BenchCommandLine {
  /// Runs a program to its end; throws where it cannot be started or does not exit 0.
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
      throw WorkError("\(error)", hint: "The benchmarks race curl, sha256sum and aria2c.")
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
