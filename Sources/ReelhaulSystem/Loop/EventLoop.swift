import CReelhaulSystem
import CReelhaulUV

/// One thread with one libuv loop, as the executor of everything that must share that thread: the C handles
/// registered on it, the actors pinned to it, and the tasks started with ``task(_:)``.
///
/// An actor is pinned by returning ``asUnownedSerialExecutor()`` as its `unownedExecutor`. A call from a task of the
/// loop to an actor of the loop costs no thread hop. Only ``enqueue(_:)``, ``execute(_:)``, ``task(_:)`` and
/// ``shutdown()`` may be called from other threads.
// @unchecked: `shared` has its own lock; everything else is touched on the loop's thread alone.
package final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
  private enum Work {
    case job(UnownedJob)
    case closure(@Sendable () -> Void)
  }

  private struct Shared {
    var work: [Work] = []
    /// The loop is, or is about to be, blocked in poll: whoever adds work must wake it.
    var sleeping = false
    var stopping = false
  }

  package let name: String
  private let shared = Lock(Shared())
  private var local: [Work] = []
  private let uv: UnsafeMutablePointer<uv_loop_t>
  private let wake: LoopHandle<uv_async_t>
  private let prepare: LoopHandle<uv_prepare_t>
  private let check: LoopHandle<uv_check_t>
  private let idle: LoopHandle<uv_idle_t>
  private var thread: Thread?

  /// Rounds of work between two polls; what is left then waits for one poll that does not block.
  private static let rounds = 8

  package init(name: String) {
    self.name = name
    uv = .allocate(capacity: 1)
    uv_loop_init(uv)
    wake = LoopHandle()
    prepare = LoopHandle()
    check = LoopHandle()
    idle = LoopHandle()
    let context = Unmanaged.passUnretained(self).toOpaque()
    uv_async_init(uv, wake.open(), nil)
    uv_prepare_init(uv, prepare.open())
    uv_check_init(uv, check.open())
    uv_idle_init(uv, idle.open())
    uv.pointee.data = context
    uv_prepare_start(prepare.pointer) { EventLoop.of($0!.pointee.loop).runWork() }
    uv_check_start(check.pointer) { EventLoop.of($0!.pointee.loop).didPoll() }
    thread = Thread(name: name) { [self] in
      rh_set_current_loop(Unmanaged.passUnretained(self).toOpaque())
      uv_run(uv, UV_RUN_DEFAULT)
      let closed = uv_loop_close(uv)
      precondition(closed == 0, "event loop \(name): a handle was left open")
      uv.deallocate()
    }
  }

  private static func of(_ loop: UnsafeMutablePointer<uv_loop_t>) -> EventLoop {
    Unmanaged<EventLoop>.fromOpaque(loop.pointee.data).takeUnretainedValue()
  }

  /// Whether the caller is on this loop's thread.
  package var onLoop: Bool { rh_current_loop() == Unmanaged.passUnretained(self).toOpaque() }

  package func checkIsolated() {
    precondition(onLoop, "not on event loop \(name)")
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    add(.job(UnownedJob(job)))
  }

  /// Runs `body` on the loop, soon, after what is enqueued already. Callable from any thread.
  package func execute(_ body: @escaping @Sendable () -> Void) {
    add(.closure(body))
  }

  /// Starts a task whose whole body, between suspensions, runs on this loop. Callable from any thread.
  @discardableResult
  package func task<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    Task(executorPreference: self) { try await body() }
  }

  private func add(_ work: Work) {
    if onLoop {
      local.append(work)
      return
    }
    let mustWake = shared.withLock { shared in
      shared.work.append(work)
      defer { shared.sleeping = false }
      return shared.sleeping
    }
    if mustWake { uv_async_send(wake.pointer) }
  }

  /// Before poll: runs what is enqueued; poll blocks only when nothing is left.
  private func runWork() {
    var round = 0
    while true {
      let stopping = shared.withLock { shared in
        if local.isEmpty {
          swap(&local, &shared.work)
        } else {
          local.append(contentsOf: shared.work)
          shared.work.removeAll(keepingCapacity: true)
        }
        shared.sleeping = local.isEmpty && !shared.stopping
        return shared.stopping
      }
      if local.isEmpty {
        uv_idle_stop(idle.pointer)
        if stopping { closeOwnHandles() }
        return
      }
      if round == Self.rounds {
        uv_idle_start(idle.pointer) { _ in }
        return
      }
      round += 1
      var batch: [Work] = []
      swap(&batch, &local)
      for work in batch {
        switch work {
        case .job(let job):
          job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
        case .closure(let body): body()
        }
      }
    }
  }

  private func didPoll() {
    shared.withLock { $0.sleeping = false }
  }

  private func closeOwnHandles() {
    wake.close()
    prepare.close()
    check.close()
    idle.close()
  }

  /// Ends the loop once its work is done, and waits for its thread. All handles opened on it must be closed, or
  /// be closed by work that is already enqueued; what is enqueued later never runs. Call it from another thread, once.
  package func shutdown() {
    precondition(!onLoop, "an event loop cannot wait for itself")
    // Under the lock: a loop that has seen `stopping` closes its handles.
    shared.withLock {
      $0.stopping = true
      uv_async_send(wake.pointer)
    }
    thread?.join()
    thread = nil
  }

  /// The C loop, for registering handles. On the loop only.
  var raw: UnsafeMutablePointer<uv_loop_t> {
    checkIsolated()
    return uv
  }
}
