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
      let (root, open) = try source(of: spec, pulse: ledger.pulse)
      let target = try await target(of: spec, root: root, ledger: ledger)
      let run = UploadRun(spec, to: target, from: checkpoint, ledger: ledger, lane: root.lane, open: open)
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
    let root = try source(of: spec, pulse: {}).root
    let target = try await target(of: spec, root: root, ledger: IdleLedger())
    try await root.loop.task {
      if let session = checkpoint.session {
        try await target.abort(session: session)
      } else if checkpoint.intendedAt > 0 {
        try await target.forget(checkpoint.plan, since: checkpoint.intendedAt)
      }
    }.value
  }

  /// The root on whose loop the upload runs, and what opens the source as it is now.
  private func source(
    of spec: TaskSpec, pulse: @escaping @Sendable () -> Void
  ) throws(TaskFailure) -> (root: StorageRoot, open: @Sendable () async throws -> any UploadSource) {
    let place: ResourceURL
    do throws(InvalidURL) {
      place = try ResourceURL(spec.source)
    } catch {
      throw TaskFailure(code: .sourceInvalid, message: "the source: \(error)", class: .fail)
    }
    switch place {
    case .storage(let url):
      guard let root = roots[url.root] else { throw StorageError.unknownRoot(url.root).failure }
      return (root, { try await StorageSource.open(url, in: root) })
    case .web(let web):
      guard let root = roots.any, let url = CurlURL(web.text) else {
        throw StorageError(.unknownRoot, "this worker has no storage, whose connections a copy needs").failure
      }
      return (
        root,
        {
          // A credential that is not for the source is for the destination, or the target refuses it.
          let secret = try await root.secret(of: spec, for: url) ?? []
          let fields = spec.headers.filter { !secret.hasField($0.name) } + secret
          return try await WebSource.open(url, fields: fields, lane: root.lane, pulse: pulse)
        }
      )
    case .s3, .tus:
      throw TaskFailure(
        code: .sourceInvalid,
        message: "a copy cannot read \(place): download it to a storage, and upload it from there", class: .fail)
    }
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

  /// The URL, and the task's header fields with those of its credential, which win. The header fields of a task whose
  /// source is an http(s) URL are for that.
  private func fields(
    of spec: TaskSpec, for place: WebURL, root: StorageRoot
  ) async throws -> (CurlURL, [HeaderField]) {
    guard let url = CurlURL(place.text) else {
      throw TaskFailure(code: .destinationInvalid, message: "the destination cannot be sent", class: .fail)
    }
    let source = StorageURL.hasScheme(spec.source.utf8) ? nil : CurlURL(spec.source)
    var secret = try await root.secret(of: spec, for: url)
    if secret == nil, let source, try await root.secret(of: spec, for: source) != nil { secret = [] }
    guard let secret else {
      let message = "the credential \"\(spec.credential ?? "")\" is not for \(url.scheme)://\(url.server)"
      throw TaskFailure(code: .credentialRefused, message: message, class: .fail)
    }
    return (url, (source == nil ? spec.headers : []).filter { !secret.hasField($0.name) } + secret)
  }
}

extension StorageRoot {
  /// The header fields of the task's credential for `url`; nil if the credential is not for it.
  fileprivate func secret(of spec: TaskSpec, for url: CurlURL) async throws(TaskFailure) -> [HeaderField]? {
    guard let name = spec.credential else { return [] }
    do throws(TaskFailure) {
      return try await credentials.fields(of: name, for: url, on: files)
    } catch {
      guard error.code == .credentialRefused else { throw error }
      return nil
    }
  }
}

extension [HeaderField] {
  fileprivate func hasField(_ name: String) -> Bool { contains { $0.name.lowercased() == name.lowercased() } }
}

/// The ledger of calls that no run makes.
private struct IdleLedger: TransferLedger {
  var epoch: Int { 0 }
  var mayWrite: Bool { true }
  func progress(bytesDone: Int64, bytesTotal: Int64?) {}
  func pulse() {}
}
