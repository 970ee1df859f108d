import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// What keeps an upload from replacing what somebody else put at its key, and what is not sure about that.
extension S3Target {
  private func conditions() async throws -> S3Conditions? {
    let (store, isAWS) = try await client.store()
    return isAWS ? .proven : S3Conditions.of(store)
  }

  func refusesToReplace(_ upload: UploadOrder) async throws -> Bool {
    guard upload.plan.publishesAtOnce else { return false }
    return try await conditions() == .proven
  }

  /// A larger object is not sent twice only to ask.
  private static let mostForQuestion: Int64 = 1 << 20

  /// Asks a bucket once whether `If-None-Match` alone keeps an object: with the one that was just made, so that its bytes are
  /// the same afterwards whatever the store does. Somebody may have taken or replaced it: the store looks at `If-Match`.
  func proveConditions(_ upload: UploadOrder, _ call: S3Client.Call, made etag: String) async throws {
    guard upload.ifExists == .fail, upload.replaces == nil, upload.size <= Self.mostForQuestion,
      try await conditions() == .honoured
    else { return }
    let store = try await client.store().name
    var question = call
    // One that this task had made before was replaced.
    question.headers.removeAll { $0.name == "If-Match" }
    question.headers += [HeaderField(name: "If-Match", value: etag), HeaderField(name: "If-None-Match", value: "*")]
    do {
      // A page of a gateway tells nothing.
      guard try await sendBytes(question).body.isEmpty else { return }
      S3Conditions.learn(.ignored, of: store)
    } catch let error as S3Error where error.status == 412 {
      switch try? await head() {
      case .found(let there) where there.etag.map(S3ETag.bare) == S3ETag.bare(etag):
        S3Conditions.learn(.proven, of: store)
      case .forbidden: S3Conditions.learn(.unproven, of: store)
      default: break
      }
    } catch let error where error is S3Error || error is TaskFailure {
      // The next object asks again.
    }
  }

  /// Sends the request that makes the object, with its condition.
  ///
  /// A bucket that has not been asked yet whether it looks at conditions gets one more, which no object meets. It refuses
  /// the request then, which is sent again without; or it makes the object, and so has shown that it does not look. A
  /// bucket that refuses every condition is looked at, and sent the request without any: it is known to refuse them once
  /// that has passed.
  func conditionally<Answer>(
    _ upload: UploadOrder, _ call: S3Client.Call, send: (S3Client.Call) async throws -> Answer
  ) async throws -> Answer {
    guard upload.ifExists != .replace, case let known = try await conditions(), known != .refused else {
      return try await send(call)
    }
    var conditional = call
    let condition = upload.replaces.map { HeaderField(name: "If-Match", value: $0) }
    conditional.headers.append(condition ?? HeaderField(name: "If-None-Match", value: "*"))
    let store = try await client.store().name
    var refusesQuestion = false
    if upload.replaces == nil, known == nil {
      var question = conditional
      question.headers.append(HeaderField(name: "If-Match", value: "\"reelhaul-\(upload.task)\""))
      do {
        let answer = try await send(question)
        S3Conditions.learn(.ignored, of: store)
        return answer
      } catch let error as S3Error {
        switch error.status {
        case 412: S3Conditions.learn(.honoured, of: store)
        case 404 where error.code == "NoSuchKey": S3Conditions.learn(.honoured, of: store)
        case _ where error.mayRefuseField: refusesQuestion = true
        default: throw error
        }
      }
    }
    do {
      let answer = try await send(conditional)
      if refusesQuestion { S3Conditions.learn(.untold, of: store) }
      return answer
    } catch let error as S3Error where error.mayRefuseField {
      try await checkNobodyElse(upload)
      let answer = try await send(call)
      hasRefusedCondition.set()
      // That it takes others may be known.
      if refusesQuestion { S3Conditions.learn(.refused, of: store) }
      return answer
    }
  }

  /// Looks once more before the object is made, where the store may not look at the condition. That it does where one
  /// request makes an object says nothing of the end of a multipart upload.
  func checkDestination(_ upload: UploadOrder, beforeJoining: Bool = false) async throws {
    guard upload.ifExists != .replace else { return }
    let known = try await conditions()
    let isAWS = try await client.store().isAWS
    let isKept = beforeJoining ? isAWS : known?.areLookedAt == true
    if !isKept { try await checkNobodyElse(upload) }
  }

  private func checkNobodyElse(_ upload: UploadOrder) async throws {
    guard let there = try await look(), there.owner?.task != upload.task else { return }
    throw try await occupied(upload)
  }

  /// What people are told of the object, after what is told already.
  func remark(_ upload: UploadOrder, after told: String? = nil) async throws -> String? {
    var remarks = [told, try await overwriteRemark(upload)].compactMap(\.self)
    if hasRefusedCopy.isSet {
      remarks.append("the store does not copy by itself: the bytes went through the worker")
    }
    return remarks.isEmpty ? nil : remarks.joined(separator: "; ")
  }

  private func overwriteRemark(_ upload: UploadOrder) async throws -> String? {
    guard upload.ifExists != .replace else { return nil }
    let field = upload.replaces == nil ? "If-None-Match" : "If-Match"
    let known: S3Conditions? = try await hasRefusedCondition.isSet ? .refused : conditions()
    switch known {
    case .refused: return "no overwrite is not guaranteed: the store refuses \(field)"
    case .proven, .honoured, .unproven: return nil
    case .ignored: return "no overwrite is not guaranteed: the store does not look at \(field)"
    case .untold, nil: return "no overwrite is not guaranteed: it is not known whether the store looks at \(field)"
    }
  }
}
