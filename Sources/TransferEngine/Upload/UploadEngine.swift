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
      let parameters = try UploadParameters(stored: spec, refusingUnknownNames: true)
      let (root, open) = try source(of: spec, parameters)
      let secrets = await secrets(of: spec, parameters, root: root)
      let target = try await target(of: spec, parameters, root: root, ledger: ledger)
      let run = UploadRun(
        spec, to: target, from: checkpoint, ledger: ledger, lane: root.lane(), open: { try await open(target) },
        hasNewCredential: { await self.secrets(of: spec, parameters, root: root, refused: secrets) != secrets })
      return try await root.loop.run { await run.run() }
    } catch let failure as TaskFailure {
      return Task.isCancelled ? .stopped : .failed(failure)
    } catch {
      return .stopped
    }
  }

  /// Gives up what a checkpoint names, so that nothing is left of it at the destination.
  package func abort(_ spec: TaskSpec, from checkpoint: UploadCheckpoint) async throws {
    // What one request makes leaves nothing, and needs no credential to be given up.
    guard !checkpoint.plan.publishesAtOnce else { return }
    let parameters = try UploadParameters(stored: spec, refusingUnknownNames: false)
    // The source is not read, so its storage need not be here.
    let root = roots.remote
    let target = try await target(of: spec, parameters, root: root, ledger: IdleLedger())
    try await root.loop.run {
      if let session = checkpoint.session {
        try await target.abort(session: session)
      } else if checkpoint.intendedAt > 0 {
        try await target.forget(checkpoint.plan, since: checkpoint.intendedAt)
      }
    }
  }

  /// The root on whose loop the upload runs, and what opens the source as it is now, for a target. The bytes of a copy are
  /// held in the name of the target's server, which keeps them as long as it does not take them.
  private func source(
    of spec: TaskSpec, _ parameters: UploadParameters
  ) throws(TaskFailure) -> (root: StorageRoot, open: @Sendable (any UploadTarget) async throws -> any OpenedSource) {
    let place: ResourceURL
    do throws(InvalidURL) {
      place = try ResourceURL(spec.source)
    } catch {
      throw TaskFailure(code: .sourceInvalid, message: "the source: \(error)", class: .fail)
    }
    switch place {
    case .storage(let url):
      guard let root = roots[url.root] else { throw StorageError.unknownRoot(url.root).failure }
      return (root, { _ in try await StorageSource.open(url, in: root) })
    case .web(let web):
      let root = roots.remote
      guard let url = CurlURL(web.text) else {
        throw TaskFailure(code: .sourceInvalid, message: "the source cannot be sent", class: .fail)
      }
      return (
        root,
        { target in
          var secret = try await root.applicableSecret(of: spec.credential, for: url)
          // It is for the destination then, or the target refuses it.
          if secret == nil, parameters.toCredential == nil { secret = [] }
          guard let secret else { throw Self.refused(spec.credential, for: url) }
          let fields = spec.headers.overridden(by: secret)
          return try await RemoteSource.open(
            url, fields: fields, lane: root.lane(), holder: .relays(to: await target.server))
        }
      )
    case .s3(let object):
      let root = roots.remote
      let client = S3Client(bucket: object.bucket, root: root, credential: spec.credential)
      return (
        root,
        { target in
          let s3 = try await S3Object(object, client: client)
          return try await RemoteSource.open(
            s3.url, s3: s3, fields: spec.headers, lane: root.lane(), holder: .relays(to: await target.server))
        }
      )
    case .tus:
      throw TaskFailure(code: .sourceInvalid, message: "a tus server gives no files", class: .fail)
    }
  }

  private func target(
    of spec: TaskSpec, _ parameters: UploadParameters, root: StorageRoot, ledger: any TransferLedger
  ) async throws -> any UploadTarget {
    let place: ResourceURL
    do throws(InvalidURL) {
      place = try ResourceURL(spec.destination ?? "")
    } catch {
      throw TaskFailure(code: .destinationInvalid, message: "the destination: \(error)", class: .fail)
    }
    switch place {
    case .web(let web):
      let (url, fields) = try await self.fields(of: spec, parameters, for: web, root: root)
      return PutTarget(
        url: url, lane: root.lane(), method: parameters.method == .post ? .post : .put, fields: fields,
        contentType: parameters.contentType, tellsDigest: parameters.checksum != UploadParameters.Checksum.none)
    case .tus(let tus):
      let (url, fields) = try await self.fields(of: spec, parameters, for: tus.endpoint, root: root)
      return TusTarget(
        endpoint: url, lane: root.lane(), fields: fields, name: StorageURL.fileName(ofSource: spec.source),
        parameters: parameters, ledger: ledger)
    case .s3(let s3):
      let credential = parameters.toCredential ?? spec.credential
      let client = S3Client(bucket: s3.bucket, root: root, credential: credential, ledger: ledger)
      return S3Target(
        client: client, key: s3.key, parameters: parameters, fields: UploadParameters.objectFields(of: spec),
        sharesSource: credential == spec.credential)
    case .storage:
      throw TaskFailure(
        code: .destinationInvalid, message: "an upload does not go to a storage: that is a copy", class: .fail)
    }
  }

  /// The URL, and the header fields of the credential for it. The header fields of a task are for its source, if that is
  /// on another server.
  private func fields(
    of spec: TaskSpec, _ parameters: UploadParameters, for place: WebURL, root: StorageRoot
  ) async throws -> (CurlURL, [HeaderField]) {
    guard let url = CurlURL(place.text) else {
      throw TaskFailure(code: .destinationInvalid, message: "the destination cannot be sent", class: .fail)
    }
    let credential = parameters.toCredential ?? spec.credential
    var secret = try await root.applicableSecret(of: credential, for: url)
    let isRemote: Bool
    switch try? ResourceURL(spec.source) {
    case .web(let web)?:
      isRemote = true
      if secret == nil, parameters.toCredential == nil, let source = CurlURL(web.text),
        try await root.applicableSecret(of: credential, for: source) != nil
      {
        secret = []
      }
    case .s3?:
      isRemote = true
      // The source refuses a credential that is not for it.
      if parameters.toCredential == nil { secret = secret ?? [] }
    default: isRemote = false
    }
    guard let secret else { throw Self.refused(credential, for: url) }
    return (url, (isRemote ? [] : spec.headers).overridden(by: secret))
  }

  /// The header fields of the task's credentials, by the URL that they are for.
  ///
  /// - Parameter refused: Those that a server may just have refused.
  private func secrets(
    of spec: TaskSpec, _ parameters: UploadParameters, root: StorageRoot, refused: [String: [HeaderField]] = [:]
  ) async -> [String: [HeaderField]] {
    var secrets: [String: [HeaderField]] = [:]
    for (place, name) in [
      (spec.source, spec.credential), (spec.destination ?? "", parameters.toCredential ?? spec.credential),
    ] {
      let url: CurlURL? =
        switch try? ResourceURL(place) {
        case .web(let web): CurlURL(web.text)
        case .tus(let tus): CurlURL(tus.endpoint.text)
        default: nil
        }
      guard let name, let url else { continue }
      secrets[place] = try? await root.credentials.fields(of: name, for: url, on: root.files, refused: refused[place])
    }
    return secrets
  }

  private static func refused(_ credential: String?, for url: CurlURL) -> TaskFailure {
    let message = "the credential \"\(credential ?? "")\" is not for \(url.scheme)://\(url.server)"
    return TaskFailure(code: .credentialRefused, message: message, class: .fail)
  }
}

extension StorageRoot {
  /// The header fields of a credential for `url`; nil if it is not for it.
  fileprivate func applicableSecret(
    of credential: String?, for url: CurlURL
  ) async throws(TaskFailure) -> [HeaderField]? {
    do throws(TaskFailure) {
      return try await fields(of: credential, for: url)
    } catch {
      guard error.code == .credentialRefused else { throw error }
      return nil
    }
  }
}

/// The ledger of calls that no run makes.
private struct IdleLedger: TransferLedger {
  var epoch: Int { 0 }
  var mayWrite: Bool { true }
  func progress(bytesDone: Int64, bytesTotal: Int64?) {}
  func pulse() {}
}
