import Glibc
import ReelhaulSystem

extension MetricsSnapshot {
  /// Adds the standard metrics of this process, read from `/proc`. One that cannot be read is left out.
  package mutating func addProcess() {
    // The name, in parentheses, may have spaces. After it come the fields from the third on.
    if let fields = Self.proc("self/stat")?.split(separator: ")").last?.split(separator: " "), fields.count > 21 {
      func number(_ field: Int) -> Double { Double(fields[field - 3]) ?? 0 }
      let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
      add(
        "process_cpu_seconds_total", (number(14) + number(15)) / ticks, kind: .counter,
        help: "User and system CPU time, in seconds.")
      add(
        "process_resident_memory_bytes", number(24) * Double(sysconf(Int32(_SC_PAGESIZE))),
        help: "Resident memory, in bytes.")
      if let boot = Self.proc("stat")?.split(separator: "\n").first(where: { $0.hasPrefix("btime ") })?.dropFirst(6) {
        add(
          "process_start_time_seconds", (Double(boot) ?? 0) + number(22) / ticks,
          help: "When the process started, in seconds since 1970.")
      }
    }
    if let descriptors = try? FileDescriptor.open("/proc/self/fd", O_RDONLY | O_DIRECTORY).entries().count {
      // Without the two that are open to list them.
      add("process_open_fds", Double(descriptors - 2), help: "Open file descriptors.")
    }
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
      add("process_max_fds", Double(limit.rlim_cur), help: "The most file descriptors that may be open.")
    }
  }

  /// With many interrupts, `/proc/stat` is long.
  private static func proc(_ name: String) -> String? {
    try? TextFile.read("/proc/\(name)", limit: 16 << 20)
  }
}
