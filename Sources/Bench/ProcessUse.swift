import Glibc
import ReelhaulSystem

/// What another process uses, as the kernel tells it.
enum ProcessUse {
  /// A value of the process's status: `VmRSS` is the present resident memory, `VmHWM` its peak.
  static func mebibytes(_ name: String, of pid: Int32) throws -> Double {
    let status = try TextFile.read("/proc/\(pid)/status")
    let line = status.split(separator: "\n").first { $0.hasPrefix("\(name):") }
    let kilobytes = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first
    return Double(kilobytes ?? "0").map { $0 / 1024 } ?? 0
  }

  /// The time of all cores, since the process began.
  static func cpuSeconds(of pid: Int32) throws -> Double {
    let text = try TextFile.read("/proc/\(pid)/stat")
    // The name, in brackets, may have spaces. User and system time are the 14th and 15th field.
    let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
    let ticks = fields.dropFirst(12).prefix(2).compactMap { Double($0) }.reduce(0, +)
    return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  /// The time of all cores of the processes that this one has started and that have ended.
  static var cpuSecondsOfEndedChildren: Double {
    var use = rusage()
    getrusage(RUSAGE_CHILDREN.rawValue, &use)
    return [use.ru_utime, use.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
  }

  /// How many descriptors are open.
  static func descriptors(of pid: Int32) throws -> Int {
    try FileDescriptor.open("/proc/\(pid)/fd", O_RDONLY | O_DIRECTORY).entries().count
  }
}
