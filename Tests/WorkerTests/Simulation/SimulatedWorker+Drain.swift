import TaskStore
import Worker

extension SimulatedWorker {
  func handle(_ event: DrainMachine.Event) {
    for action in drain.handle(event, now: simulation.now) {
      switch action {
      case .stopIntake: wait(for: .intakeStopped) { $0.batch == nil && !$0.isClaiming }
      case .stopRuns:
        for task in runs.keys { runs[task]?.stop = .drain }
        wait(for: .runsEnded) { $0.runs.isEmpty }
      case .relay(let until):
        relay.drain(until: until, now: simulation.now)
        tickRelay()
      case .flush: handle(.flushed)
      case .retire: retire()
      case .exit(let code): exit(code)
      }
    }
  }

  private func wait(for event: DrainMachine.Event, _ isOver: @escaping @MainActor (SimulatedWorker) -> Bool) {
    guard !isOver(self) else { return handle(event) }
    later(.milliseconds(1)) { $0.wait(for: event, isOver) }
  }

  private func retire() {
    guard let id = lease.worker else { return handle(.retired) }
    lease.end()
    call({ try await $0.retire(id) }, then: { worker, _ in worker.handle(.retired) })
  }
}
