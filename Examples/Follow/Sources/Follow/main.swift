import Foundation
import ReelhaulHTTPClient

let arguments = CommandLine.arguments
let environment = ProcessInfo.processInfo.environment
guard arguments.count == 3, let url = environment["REELHAUL_API"].flatMap(URL.init) else {
  FileHandle.standardError.write(Data("usage: REELHAUL_API=URL follow SOURCE DESTINATION\n".utf8))
  exit(2)
}

let fleet = FleetClient(url: url, token: environment["REELHAUL_TOKEN"])
do {
  let task = NewTask(kind: "download", source: arguments[1], destination: arguments[2])
  print("submitted \(try await fleet.submit(task).uuidString.lowercased())")
  for try await progress in fleet.progress(of: task.id) {
    let percent = progress.fraction.map { "\(Int($0 * 100)) %" } ?? "\(progress.bytesDone) bytes"
    print("\(progress.state) \(percent)")
  }
  let end = try await fleet.task(task.id)
  if let error = end.error { print("\(error.code): \(error.message)") }
  exit(end.state == .succeeded ? 0 : 1)
} catch {
  FileHandle.standardError.write(Data("\(error)\n".utf8))
  exit(3)
}
