import MemoryTaskStore
import TaskStore
import WorkerCore

extension SimulatedWorker {
  func handle(_ event: DrainMachine.Event) {
    for action in drain.handle(event, now: now) {
      switch action {
      case .stopIntake: once({ !$0.isClaiming }, then: { $0.handle(.intakeStopped) })
      case .stopRuns:
        for task in runs.keys { runs[task]?.stop = .drain }
        once({ $0.runs.isEmpty }, then: { $0.handle(.runsEnded) })
      case .relay(let until):
        once(
          { $0.batch == nil || $0.now >= until },
          then: { worker in
            worker.relay.drain(until: until, now: worker.now)
            worker.tickRelay()
          })
      case .flush: handle(.flushed)
      case .retire: retire()
      case .exit(let code): exit(code)
      }
    }
  }

  private func once(
    _ condition: @escaping @MainActor (SimulatedWorker) -> Bool,
    then body: @escaping @MainActor (SimulatedWorker) -> Void
  ) {
    guard !condition(self) else { return body(self) }
    later(.milliseconds(20)) { $0.once(condition, then: body) }
  }

  private func retire() {
    guard let id = lease.worker else { return handle(.retired) }
    lease.end()
    call({ try await $0.retire(id) }, then: { worker, _ in worker.handle(.retired) })
  }
}
