import Glibc

/// Dates as RFC 9110, 5.6.7, writes them: `Sat, 21 Nov 2026 14:17:26 GMT`.
enum HTTPDate {
  static func text(seconds: Int64) -> String {
    var time = time_t(seconds)
    var parts = tm()
    gmtime_r(&time, &parts)
    return String(unsafeUninitializedCapacity: 40) { buffer in
      buffer.withMemoryRebound(to: CChar.self) {
        strftime($0.baseAddress, $0.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
      }
    }
  }
}
