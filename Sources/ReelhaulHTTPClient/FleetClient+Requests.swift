import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension FleetClient {
  /// Sends a request until it is answered, and decodes the answer. The request may be repeated without harm.
  func send<Answer: Decodable>(_ request: URLRequest) async throws -> Answer {
    let data = try await answer(to: request)
    do {
      return try Self.decoder().decode(Answer.self, from: data)
    } catch {
      throw FleetError(.unreadableAnswer, "the answer is not one that this client understands: \(error)")
    }
  }

  private func answer(to request: URLRequest) async throws -> Data {
    var attempt = 1
    while true {
      do {
        return try await sendOnce(request)
      } catch let error as FleetError {
        guard error.isRetryable, attempt < configuration.attempts else { throw error }
        try await rest(after: attempt, asked: error.retryAfter)
        attempt += 1
      }
    }
  }

  private func sendOnce(_ request: URLRequest) async throws -> Data {
    let data: Data
    let response: URLResponse?
    do {
      (data, response) = try await exchanges.answer(to: request)
    } catch {
      try Task.checkCancellation()
      throw FleetError(connection: error)
    }
    guard let response = response as? HTTPURLResponse else {
      throw FleetError(.unreadableAnswer, "the answer is not one of HTTP")
    }
    guard 200..<300 ~= response.statusCode else { throw FleetError(response: response, body: data) }
    return data
  }

  /// Waits longer with each attempt, each time for a different while, so that many clients do not return at once; but as
  /// long as the server has asked for, up to the longest delay.
  func rest(after attempt: Int, asked: Duration? = nil) async throws {
    let longest = configuration.longestDelay
    let doubled = configuration.firstDelay * Double(UInt64(1) << UInt64(min(attempt - 1, 20)))
    let delay = min(longest, doubled) * Double.random(in: 0.5...1)
    try await Task.sleep(for: max(delay, min(asked ?? .zero, longest)))
  }

  static func decoder() -> JSONDecoder {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .custom { decoder in
      let container = try decoder.singleValueContainer()
      let text = try container.decode(String.self)
      guard let date = FleetTime.date(text) else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "\"\(text)\" is no time")
      }
      return date
    }
    return decoder
  }

  static func encode(_ value: some Encodable) throws(FleetError) -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .custom { date, encoder in
      var container = encoder.singleValueContainer()
      try container.encode(FleetTime.text(date))
    }
    do {
      return try encoder.encode(value)
    } catch {
      throw FleetError(.invalidTask, "it cannot be written as JSON: \(error)")
    }
  }
}

/// Times as RFC 3339: read with or without a fraction, written with milliseconds.
enum FleetTime {
  static func date(_ text: String) -> Date? {
    (try? Date(text, strategy: .iso8601.year().month().day().time(includingFractionalSeconds: true)))
      ?? (try? Date(text, strategy: .iso8601))
  }

  static func text(_ date: Date) -> String {
    // The style cuts off what is below a millisecond, and most fractions are a little less than what they stand for.
    (date + 0.0005).formatted(
      .iso8601.year().month().day().timeZone(separator: .omitted).time(includingFractionalSeconds: true))
  }
}
