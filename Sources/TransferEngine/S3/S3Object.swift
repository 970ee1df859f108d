import ReelhaulCurl
import ReelhaulSystem
import TaskCore

/// The object that a download or a copy reads from a store that speaks S3. Every request is signed.
struct S3Object: Sendable {
  let client: S3Client
  /// Where the object is.
  let url: CurlURL
  let place: S3URL
  private let query: S3Query
  private let endpoint: S3Endpoint
  private(set) var credential: S3Credential
  /// The seconds by which the store's clock is ahead, with which the requests are signed.
  private(set) var clockDifference: Int64

  /// Throws ``TaskFailure``.
  init(_ place: S3URL, client: S3Client) async throws {
    self.place = place
    self.client = client
    credential = try await client.credential()
    clockDifference = client.clockDifference
    query = place.versionID.map { ["versionId": $0] } ?? [:]
    do throws(InvalidS3Location) {
      endpoint = try S3Endpoint(credential, bucket: place.bucket, key: place.key)
    } catch {
      throw TaskFailure(code: .sourceInvalid, message: "the source: \(error)", class: .fail)
    }
    guard let url = CurlURL(endpoint.url(query), keepsPath: true) else {
      throw TaskFailure(code: .sourceInvalid, message: "the source cannot be sent", class: .fail)
    }
    self.url = url
  }

  /// The same object with keys that have not ended, and with the store's time. If no keys can be had, the former stay:
  /// what the store says of them tells what to do.
  func current() async -> S3Object {
    var object = self
    object.clockDifference = client.clockDifference
    if let credential = try? await client.credential() { object.credential = credential }
    return object
  }

  /// The same object in the region that the store has told meanwhile.
  func moved() async throws -> S3Object { try await S3Object(place, client: client) }

  /// The value of `x-amz-copy-source`.
  var copySource: String {
    S3Encoding.path("\(place.bucket)/\(place.key)") + (query.isEmpty ? "" : "?\(query.text)")
  }

  /// Signs a request to the object itself, not one to which the store redirects.
  func sign(_ request: inout CurlRequest) {
    guard request.url == url.text else { return }
    request.url = endpoint.url(query)
    request.keepsPath = true
    for (index, field) in request.headers.enumerated() where field.name == "If-Range" && field.value.hasPrefix("\"") {
      // Another version is not worth its bytes.
      request.headers[index].name = "If-Match"
    }
    let signed = request.headers.filter {
      let name = $0.name.lowercased()
      return name == "range" || name == "if-match" || name.hasPrefix("x-amz-")
    }
    let fields = client.signer.fields(
      for: S3Request(
        "GET", endpoint, query: query, headers: signed.map { HeaderField(name: $0.name, value: $0.value) }),
      payloadHash: S3Signer.emptyPayload, credential: credential,
      at: Clocks.realtimeMicroseconds() / 1_000_000 + clockDifference)
    request.headers += fields.map { ($0.name, $0.value) }
  }

  /// Whether the store must be asked what a failure means: only its status is known.
  static func leavesOpen(_ failure: TaskFailure) -> Bool {
    failure.code == .badResponse || failure.code.httpStatus.map((300..<500).contains) == true
  }

  /// What the store says of a failure if it ``leavesOpen(_:)`` what it means.
  ///
  /// Returns nil if it gives the object now, from another region than the one that was asked.
  func explained(_ failure: TaskFailure, _ fields: [HeaderField]) async -> TaskFailure? {
    guard Self.leavesOpen(failure) else { return failure }
    let headers = [HeaderField(name: "Range", value: "bytes=0-0")] + fields
    do {
      _ = try await client.send(S3Client.Call(method: .get, key: place.key, query: query, headers: headers))
    } catch let error as S3Error {
      return client.failure(error, place.key)
    } catch let failure as TaskFailure where failure.class == .wait {
      // The keys have ended, and no others can be had now.
      return failure
    } catch {
      return failure
    }
    guard let now = try? await client.credential(), now.region == credential.region else { return nil }
    var failure = failure
    // Keys that ended meanwhile, or a state of the store that has passed.
    failure.class = .retry
    return failure
  }
}

extension S3URL {
  /// Whether it names one of several versions. S3 calls that of an object `null` which was made without versions; not all
  /// stores tell it.
  var namesVersion: Bool { versionID ?? "null" != "null" }

  /// Why an answer is not about the version that the URL names; nil if it is, or if the URL names none. A store that knows
  /// no versions answers with the current one.
  func otherVersion(in head: CurlHead) -> TaskFailure? {
    guard namesVersion, head["x-amz-version-id"] != versionID else { return nil }
    return TaskFailure(
      code: .sourceInvalid, message: "\(self): the store does not answer with this version, but with the current one",
      class: .fail)
  }
}
