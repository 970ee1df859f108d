import CReelhaulSystem
import CReelhaulUV
import Glibc
import Synchronization

/// One thread with one libuv loop. It is the executor of everything that shares this thread: the C handles registered
/// on the loop, the actors bound to it, and the tasks started with ``task(_:)``.
///
/// An actor is bound by returning ``asUnownedSerialExecutor()`` as its `unownedExecutor`. A task of the loop calls an
/// actor of the loop without changing threads. Other threads may call only ``enqueue(_:)``, ``execute(_:)``,
/// ``task(_:)`` and ``shutdown()``.
// @unchecked: `shared` has its own lock; everything else is touched only on the loop's thread.
package final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
  private enum Work {
    case job(UnownedJob)
    case closure(@Sendable () -> Void)
  }

  private struct Shared {
    var work: [Work] = []
    /// True if the loop is blocked in poll, or is about to be. Then a thread that adds work must wake it.
    var sleeping = false
    var stopping = false
  }

  package let name: String
  private let shared = Lock(Shared())
  /// How many threads are about to wake the loop. Something else may wake it before they do, and let it end.
  private let wakers = Atomic(0)
  private var local: [Work] = []
  /// Jobs of tasks with the priority `utility` or a lower one, of which a poll never waits for many.
  private var patient: ArraySlice<UnownedJob> = []
  private let uv: UnsafeMutablePointer<uv_loop_t>
  private let wake: LoopHandle<uv_async_t>
  private let prepare: LoopHandle<uv_prepare_t>
  private let check: LoopHandle<uv_check_t>
  private let idle: LoopHandle<uv_idle_t>
  private let rest: LoopHandle<uv_timer_t>
  /// Whether patient jobs leave the processor to others for a moment.
  private var isResting = false
  private var thread: Thread?

  /// The rounds of work between two polls. Remaining work waits for one poll that does not block.
  private static let rounds = 8
  /// For how many milliseconds patient jobs run, and then rest for as long if some are left.
  private static let slice: UInt64 = 1

  package init(name: String) {
    self.name = name
    uv = .allocate(capacity: 1)
    let code = uv_loop_init(uv)
    precondition(code == 0, "event loop \(name): \(SystemError(errno: -code, operation: "begin"))")
    wake = LoopHandle()
    prepare = LoopHandle()
    check = LoopHandle()
    idle = LoopHandle()
    rest = LoopHandle()
    let context = Unmanaged.passUnretained(self).toOpaque()
    uv_async_init(uv, wake.open(), nil)
    uv_prepare_init(uv, prepare.open())
    uv_check_init(uv, check.open())
    uv_idle_init(uv, idle.open())
    uv_timer_init(uv, rest.open())
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

  /// Runs `body` on the loop, after the work that is already enqueued. Any thread may call it.
  package func execute(_ body: @escaping @Sendable () -> Void) {
    add(.closure(body))
  }

  /// Starts a task whose whole body runs on this loop between its suspensions. Any thread may call it.
  ///
  /// A task with the priority `utility` is patient: all other work that is there comes first, and such tasks together
  /// use at most about half of the thread's time.
  @discardableResult
  package func task<Success: Sendable>(
    priority: TaskPriority? = nil, _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    Task(executorPreference: self, priority: priority) { try await body() }
  }

  /// Runs `body` as a task on the loop, and returns what it returns. If the caller is canceled, so is that task.
  package func run<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) async throws -> Success {
    let task = task(body)
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }

  /// Runs `body` on the loop. If the caller is canceled, calls `stop` there; `body` then ends by itself.
  package func run<Success: Sendable>(
    _ body: @escaping @Sendable () async -> Success, stop: @escaping @Sendable () -> Void
  ) async -> Success {
    await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in task { continuation.resume(returning: await body()) } }
    } onCancel: {
      execute { stop() }
    }
  }

  private func add(_ work: Work) {
    if onLoop {
      local.append(work)
      return
    }
    let mustWake = shared.withLock { shared in
      shared.work.append(work)
      defer { shared.sleeping = false }
      if shared.sleeping { wakers.add(1, ordering: .relaxed) }
      return shared.sleeping
    }
    guard mustWake else { return }
    uv_async_send(wake.pointer)
    wakers.subtract(1, ordering: .releasing)
  }

  /// Runs the enqueued work before poll. Poll blocks only if no work is left.
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
        isResting = isResting && !shared.stopping
        shared.sleeping = local.isEmpty && (patient.isEmpty || isResting) && !shared.stopping
        return shared.stopping
      }
      if local.isEmpty, patient.isEmpty || isResting {
        uv_idle_stop(idle.pointer)
        if stopping { closeOwnHandles() }
        return
      }
      if local.isEmpty || round == Self.rounds {
        if !isResting { runPatient() }
        uv_idle_start(idle.pointer) { _ in }
        return
      }
      round += 1
      var batch: [Work] = []
      swap(&batch, &local)
      for work in batch {
        switch work {
        case .job(let job):
          if Self.isPatient(job) { patient.append(job) } else { run(job) }
        case .closure(let body): body()
        }
      }
    }
  }

  private static func isPatient(_ job: UnownedJob) -> Bool {
    1...TaskPriority.utility.rawValue ~= job.priority.rawValue
  }

  private func run(_ job: UnownedJob) {
    job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
  }

  private func runPatient() {
    let end = Clocks.boottime() + Int64(Self.slice) * 1_000_000
    while let job = patient.popFirst() {
      run(job)
      guard Clocks.boottime() < end else { break }
    }
    guard !patient.isEmpty else { return }
    isResting = true
    uv_update_time(uv)
    uv_timer_start(rest.pointer, { EventLoop.of($0!.pointee.loop).isResting = false }, Self.slice, 0)
  }

  private func didPoll() {
    shared.withLock { $0.sleeping = false }
  }

  private func closeOwnHandles() {
    while wakers.load(ordering: .acquiring) > 0 { sched_yield() }
    wake.close()
    prepare.close()
    check.close()
    idle.close()
    rest.close()
  }

  /// Ends the loop after its work is done, and waits for its thread. All handles on the loop must be closed, or be
  /// closed by work that is already enqueued. Work that is enqueued later never runs. Call it once, from another
  /// thread.
  package func shutdown() {
    precondition(!onLoop, "an event loop cannot wait for itself")
    // Within the lock, because a loop that has seen `stopping` closes its handles.
    shared.withLock {
      $0.stopping = true
      uv_async_send(wake.pointer)
    }
    thread?.join()
    thread = nil
  }

  /// The C loop, for registering handles. Use it only on the loop.
  var raw: UnsafeMutablePointer<uv_loop_t> {
    checkIsolated()
    return uv
  }
}
