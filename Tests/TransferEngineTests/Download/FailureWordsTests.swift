import ReelhaulCurl
import TaskCore
import Testing

@testable import TransferEngine

/// The codes are a contract, because operators' alerts and producers' programs compare them.
@Suite struct FailureWordsTests {
  @Test(
    "a storage's errors have these words, and these consequences",
    arguments: [
      (StorageError.Code.unknownRoot, "storage_unknown", TaskFailure.Class.wait),
      (.rootMissing, "storage_missing", .wait), (.notInitialised, "storage_not_initialised", .wait),
      (.volumeGone, "storage_volume_gone", .wait), (.readOnly, "storage_read_only", .wait),
      (.denied, "storage_denied", .wait), (.diskFull, "disk_full", .wait), (.tooLarge, "file_too_large", .fail),
      (.tooManyFiles, "too_many_files", .wait), (.ioError, "storage_io_error", .wait),
      (.stagingMissing, "staging_missing", .wait), (.stagingForeign, "staging_foreign", .wait),
      (.stagingShort, "staging_short", .wait), (.destinationExists, "destination_exists", .fail),
      (.destinationInvalid, "destination_invalid", .fail), (.other, "storage_error", .retry),
    ])
  func storage(_ code: StorageError.Code, _ word: String, _ class: TaskFailure.Class) {
    let failure = StorageError(code, "a sentence").failure
    #expect(failure == TaskFailure(code: .init(rawValue: word), message: "a sentence", class: `class`))
  }

  @Test(
    "a connection's errors keep their words",
    arguments: [
      (CurlError.Code.addressRefused, TaskFailure.Code.addressRefused), (.headTooLarge, .headTooLarge),
      (.badResponse, .badResponse), (.connectFailed, .connectFailed), (.timedOut, .timedOut), (.tlsFailed, .tlsFailed),
      (.certificateUntrusted, .certificateUntrusted), (.certificateExpired, .certificateExpired),
      (.certificateMisnamed, .certificateMisnamed), (.caFile, .caFileUnusable), (.cut, .connectionCut),
      (.noResponse, .noResponse), (CurlError.Code(name: "curl_61"), TaskFailure.Code(rawValue: "curl_61")),
    ])
  func connection(_ code: CurlError.Code, _ word: TaskFailure.Code) {
    #expect(TaskFailure(CurlError(code, message: ""), url: "http://a.example/").code == word)
  }
}
