import CReelhaulSystem

/// The heap of this process.
package enum Heap {
  /// Keeps resident memory near what is in use: glibc would keep an arena for every thread, and what a burst of work
  /// once needed. For services; call it before the first thread starts.
  package static func bound() {
    rh_bound_heap()
  }
}
