import Glibc
import ReelhaulSystem

/// Ends this test process when its parent has gone, because a killed `swift test` would leave it running. Its children
/// end with it, because every child asks for a signal at its parent's death.
package enum OrphanWatch {
  /// Begins at the first use.
  package static let isKept: Bool = {
    let parent = getppid()
    Thread(name: "orphan-watch") {
      while getppid() == parent { sleep(1) }
      // An orderly end may hang while threads are at work. Then this signal ends the process.
      alarm(20)
      exit(1)
    }.detach()
    return true
  }()
}
