import CReelhaulSystem

/// The heap of this process.
package enum Heap {
  /// Keeps resident memory close to the memory in use. By default glibc keeps an arena for every thread, and the
  /// memory of the largest burst. Services call it before the first thread starts.
  package static func bound() {
    rh_bound_heap()
  }
}
