import CommandLineKit
import Glibc
import LocalFleet
import ReelhaulClient
import TaskCore
import TaskStore

/// Runs the demo: reads the tasks, carries out the script's actions, and remembers which workers owned each task.
struct DemoRun {
  let films: [UniqueID: DemoFilm]
  let fleet: LocalFleet
  let client: ReelhaulClient
  let store: any TaskReader & FleetReader
  private(set) var script: DemoScript
  private(set) var documents: [TaskDocument] = []
  /// The names of the workers that owned a task, in order.
  private(set) var workers: [UniqueID: [String]] = [:]
  /// Every worker that has been seen.
  private var names: [UniqueID: WorkerDocument] = [:]
  private var stage: any DemoStage
  private let order: [UniqueID]

  init(
    films: [UniqueID: DemoFilm], fleet: LocalFleet, client: ReelhaulClient, store: any TaskReader & FleetReader,
    stage: any DemoStage
  ) {
    self.films = films
    self.fleet = fleet
    self.client = client
    self.store = store
    self.stage = stage
    order = DemoFilm.all.compactMap { film in films.first { $0.value == film }?.key }
    script = DemoScript(films.mapValues(\.role))
  }

  /// Returns once all tasks have ended.
  mutating func play(within limit: Duration, every interval: Duration) async throws {
    let deadline = ContinuousClock.now + limit
    while true {
      try await look()
      stage.show(documents)
      for action in script.look(at: documents) { try await act(action) }
      if documents.count == films.count, documents.allSatisfy(\.state.isFinal) { return }
      guard ContinuousClock.now < deadline else {
        throw WorkError("the demo did not end within \(limit)", hint: "See \(fleet.layout.logs).")
      }
      try await Task.sleep(for: interval)
    }
  }

  private mutating func look() async throws {
    for worker in try await store.workers() { names[worker.id] = worker }
    var documents: [TaskDocument] = []
    for id in order {
      guard let document = try await store.task(id) else { continue }
      documents.append(document)
      if let worker = document.worker { note(worker, of: id) }
    }
    self.documents = documents
  }

  private mutating func note(_ worker: UniqueID, of task: UniqueID) {
    guard let document = names[worker] else { return }
    let name = name(of: document)
    if workers[task]?.last != name { workers[task, default: []].append(name) }
  }

  /// The name of the worker's place. From the second process in that place on, a number is added.
  private func name(of worker: WorkerDocument) -> String {
    let place = worker.labels["name"] ?? worker.host
    let earlier = names.values.count { $0.labels["name"] == place && $0.id < worker.id }
    return earlier == 0 ? place : "\(place).\(earlier + 1)"
  }

  private mutating func act(_ action: DemoScript.Action) async throws {
    switch action {
    case .pause(let id):
      try await client.pause(id)
      say("Pausing \(title(id))")
    case .resume(let id):
      try await client.resume(id)
      say("Resuming \(title(id)): it made no progress while it was paused")
    case .cancel(let id):
      try await client.cancel(id)
      say("Canceling \(title(id))")
    case .kill(let worker, let id):
      guard let pid = names[worker]?.pid, let slot = fleet.workers.first(where: { $0.pid == pid }) else { return }
      slot.kill(SIGKILL)
      say("SIGKILL to \(slot.name) (\(pid)) in the middle of \(title(id)); another worker continues after its lease")
    }
  }

  private func title(_ id: UniqueID) -> String { films[id]?.title ?? "\(id)" }

  private mutating func say(_ text: String) { stage.say(text) }
}
