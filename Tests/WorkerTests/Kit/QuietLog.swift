import Glibc
import ReelhaulTelemetry

/// Where tests log: they check behaviour, not lines.
let quietLog = Logger(level: .error, descriptor: open("/dev/null", O_WRONLY | O_CLOEXEC))
