import Foundation
import ReelhaulWorker
import TranscodeHandler
import TranscodeTask

// Configured by the environment, as `reelhaul worker` is: REELHAUL_KAFKA, REELHAUL_POSTGRES, REELHAUL_STORAGE, …
do {
  try await ReelhaulWorker.run(handlers: [Transcode()])
} catch let error as WorkerError {
  FileHandle.standardError.write(Data("error: \(error)\n".utf8))
  exit(error.code)
}
