import ReelhaulCurl
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// Runs uploads, many at a time.
package struct UploadEngine: Sendable {
  private let roots: StorageRoots

  package init(roots: StorageRoots) {
    self.roots = roots
  }

  /// Runs one attempt of `spec`, and continues from `checkpoint`, which earlier runs recorded. Cancel the Swift task to
  /// stop it.
  package func run(
    _ spec: TaskSpec, from checkpoint: UploadCheckpoint?, ledger: any UploadLedger
  ) async -> UploadOutcome {
    do {
      let (url, root) = try source(of: spec)
      let target = try await target(of: spec, root: root, ledger: ledger)
      let run = UploadRun(spec, to: target, from: checkpoint, ledger: ledger, lane: root.lane) {
        try await StorageSource.open(url, in: root)
      }
      let task = root.loop.task { await run.run() }
      return try await withTaskCancellationHandler {
        try await task.value
      } onCancel: {
        task.cancel()
      }
    } catch let failure as TaskFailure {
      return .failed(failure)
    } catch {
      return .stopped
    }
  }

  /// Gives up what a checkpoint names, so that nothing is left of it at the destination.
  package func abort(_ spec: TaskSpec, from checkpoint: UploadCheckpoint) async throws {
    guard let session = checkpoint.session else { return }
    let root = try source(of: spec).1
    let target = try await target(of: spec, root: root, ledger: IdleLedger())
    try await root.loop.task { try await target.abort(session: session) }.value
  }

  private func source(of spec: TaskSpec) throws(TaskFailure) -> (StorageURL, StorageRoot) {
    let url: StorageURL
    do throws(InvalidStorageURL) {
      url = try StorageURL(spec.source)
    } catch {
      throw TaskFailure(code: .sourceInvalid, message: "the source: \(error)", class: .fail)
    }
    guard let root = roots[url.root] else { throw StorageError.unknownRoot(url.root).failure }
    return (url, root)
  }

  private func target(
    of spec: TaskSpec, root: StorageRoot, ledger: any TransferLedger
  ) async throws -> any UploadTarget {
    let (place, parameters): (ResourceURL, UploadParameters)
    do {
      place = try ResourceURL(spec.destination ?? "")
      parameters = try UploadParameters(spec)
    } catch let error as InvalidURL {
      throw TaskFailure(code: .destinationInvalid, message: "the destination: \(error)", class: .fail)
    } catch {
      throw TaskFailure(code: .parametersInvalid, message: "\(error)", class: .fail)
    }
    switch place {
    case .web(let web):
      let (url, fields) = try await self.fields(of: spec, for: web, root: root)
      return PutTarget(
        url: url, lane: root.lane, method: parameters.method == .post ? .post : .put, fields: fields,
        contentType: parameters.contentType, ledger: ledger)
    case .tus(let tus):
      let (url, fields) = try await self.fields(of: spec, for: tus.endpoint, root: root)
      return TusTarget(
        endpoint: url, lane: root.lane, fields: fields, name: StorageURL.fileName(ofSource: spec.source),
        parameters: parameters, ledger: ledger)
    case .s3(let s3):
      let client = S3Client(bucket: s3.bucket, root: root, credential: spec.credential, pulse: ledger.pulse)
      return S3Target(client: client, key: s3.key, parameters: parameters)
    case .storage:
      throw TaskFailure(
        code: .destinationInvalid, message: "an upload does not go to a storage: that is a copy", class: .fail)
    }
  }

  /// The URL, and the task's header fields with those of its credential, which win.
  private func fields(
    of spec: TaskSpec, for place: WebURL, root: StorageRoot
  ) async throws -> (CurlURL, [HeaderField]) {
    guard let url = CurlURL(place.text) else {
      throw TaskFailure(code: .destinationInvalid, message: "the destination cannot be sent", class: .fail)
    }
    return (url, try await root.fields(of: spec, for: url))
  }
}

/// The ledger of calls that no run makes.
private struct IdleLedger: TransferLedger {
  var epoch: Int { 0 }
  var mayWrite: Bool { true }
  func progress(bytesDone: Int64, bytesTotal: Int64?) {}
  func pulse() {}
}
