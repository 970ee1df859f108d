import Glibc
import ReelhaulSystem

/// Ends this test process once whoever runs it is gone: a killed `swift test` leaves it behind, at work. What it has
/// started ends with it: every child asks for a signal at its parent's death.
package enum OrphanWatch {
  /// Begins with the first use.
  package static let isKept: Bool = {
    let parent = getppid()
    Thread(name: "orphan-watch") {
      while getppid() == parent { sleep(1) }
      // What ends in order may hang where threads are at work: then the signal ends it.
      alarm(20)
      exit(1)
    }.detach()
    return true
  }()
}
