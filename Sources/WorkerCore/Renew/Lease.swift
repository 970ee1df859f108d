import TaskCore
import TaskStore

/// One registration of this process with the store. A task writes only under the lease with which it was claimed.
package struct Lease: Sendable {
  package let worker: WorkerID
  package let boot: UniqueID
  package let fence: Fence

  package init(worker: WorkerID, boot: UniqueID, fence: Fence) {
    self.worker = worker
    self.boot = boot
    self.fence = fence
  }
}
