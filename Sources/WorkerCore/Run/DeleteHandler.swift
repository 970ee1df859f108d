import ReelhaulCodec
import ReelhaulMessages
import TaskCore
import TaskStore
import TransferEngine

/// Deletes what a URL names: the file or directory at a `storage://` URL on the threads of its root, everything else with
/// requests to its server.
///
/// It is exact: a file without the expected digest or size is not deleted. It is idempotent: if the file is absent, the
/// task succeeds, and the output says so. A directory needs the parameters `{"recursive": true}`. The output is
/// `{"files": N, "bytes": N}`; without `bytes` if a server did not tell the size.
package struct DeleteHandler: KindHandler {
  package let kind = TaskKind.delete
  private let roots: StorageRoots

  package init(roots: StorageRoots) {
    self.roots = roots
  }

  package func run(_ claim: Claim, ledger: RunLedger) async -> RunOutcome {
    do {
      let (place, parameters) = try place(of: claim.spec)
      guard case .storage(let url) = place else { return try await delete(place, claim, ledger) }
      let run = try DeleteRun(
        claim, at: url, isRecursive: parameters.isRecursive, ledger: ledger, roots: roots)
      return try await withTaskCancellationHandler {
        try await run.run()
      } onCancel: {
        run.stop()
      }
    } catch let failure as TaskFailure {
      return .failed(failure)
    } catch let error as StorageError {
      return .failed(error.failure)
    } catch is OwnershipLost {
      return .stopped
    } catch is CancellationError {
      return .stopped
    } catch {
      return .failed(.unrecorded(error))
    }
  }

  private func place(of spec: TaskSpec) throws(TaskFailure) -> (ResourceURL, DeleteParameters) {
    let place: ResourceURL
    do throws(InvalidURL) {
      place = try ResourceURL(spec.source)
    } catch {
      throw TaskFailure(code: .sourceInvalid, message: "the source: \(error)", class: .fail)
    }
    return (place, try DeleteParameters(stored: spec))
  }

  private func delete(_ place: ResourceURL, _ claim: Claim, _ ledger: RunLedger) async throws -> RunOutcome {
    let before = try DeletePlan(claim.checkpoint)?.total ?? Deletion.Count()
    let deletion = RemoteDeletion(claim.spec, root: roots.remote, ledger: ledger, before: before) { count in
      try await ledger.checkpoint(Checkpoint(bytesDone: count.bytes, payload: count.json))
    }
    let result = try await HostLine.$current.withValue(ledger.line) { try await deletion.run(place) }
    return .deleted(files: result.files, bytes: result.bytes, wasAbsent: result.wasAbsent)
  }
}

extension Deletion.Count {
  /// What the next run of a deletion on another server needs.
  fileprivate var json: [UInt8] {
    JSONWriter.write { json in
      json.object { json in
        json.member("files", files)
        json.member("bytes", bytes)
      }
    }
  }
}

extension RunOutcome {
  static func deleted(files: Int64, bytes: Int64?, wasAbsent: Bool) -> RunOutcome {
    let output = JSONWriter.write { json in
      json.object { json in
        json.member("files", files)
        json.member("bytes", bytes)
        if wasAbsent { json.member("absent", true) }
      }
    }
    return .succeeded(sha256: nil, bytes: bytes ?? 0, output: output)
  }
}
