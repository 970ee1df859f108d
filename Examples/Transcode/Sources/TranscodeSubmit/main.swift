import Foundation
import ReelhaulClient
import ReelhaulTasks
import TranscodeTask

// transcode-submit SOURCE HEIGHT DESTINATION: submits a task and prints its id.
let arguments = CommandLine.arguments
guard arguments.count == 4, let height = Int(arguments[2]) else {
  print("usage: transcode-submit SOURCE HEIGHT storage://NAME/PATH")
  exit(2)
}
let environment = ProcessInfo.processInfo.environment
let task = try Transcode.task(source: arguments[1], height: height, destination: arguments[3])
let client = try ReelhaulClient.connect(
  bootstrap: environment["REELHAUL_KAFKA"] ?? "127.0.0.1:9092",
  topicPrefix: environment["REELHAUL_TOPIC_PREFIX"] ?? "reelhaul.")
try await client.submit(task)
print(task.id)
await client.close()
