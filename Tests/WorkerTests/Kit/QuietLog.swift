import Glibc
import ReelhaulTelemetry

/// The log of tests, which is discarded: tests check behaviour, not log lines.
let quietLog = Logger(level: .error, descriptor: open("/dev/null", O_WRONLY | O_CLOEXEC))
