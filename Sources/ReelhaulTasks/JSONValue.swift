import FoundationEssentials
import ReelhaulCodec

/// The JSON of parameters, checkpoints and outputs: dates as ISO 8601 with milliseconds, data as Base64, members in the
/// order of their names.
package enum JSONValue {
  /// Throws ``InvalidJSON`` where no reader would take it: it nests too deep, or has a number that is not finite.
  package static func encode(_ value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .custom { date, encoder in
      var container = encoder.singleValueContainer()
      // The style cuts off what is below a millisecond, and most fractions are a little less than what they stand for.
      try container.encode(Date.ISO8601FormatStyle(includingFractionalSeconds: true).format(date + 0.0005))
    }
    let json: [UInt8]
    do {
      json = Array(try encoder.encode(value))
    } catch EncodingError.invalidValue(_, let context) {
      throw InvalidJSON(path: InvalidJSON.path(context.codingPath), reason: context.debugDescription)
    }
    do throws(DecodingFailure) {
      return try JSONReader.read(json, limit: .max) { reader throws(DecodingFailure) in try reader.raw() }
    } catch {
      throw InvalidJSON(path: "", reason: "\(error)")
    }
  }

  /// `json` is JSON, as ``JSONReader`` reads it. Throws ``InvalidJSON``, which names the place where Foundation tells it.
  package static func decode<Value: Decodable>(_ type: Value.Type, from json: [UInt8]) throws(InvalidJSON) -> Value {
    let decoder = JSONDecoder()
    // With or without a fraction.
    decoder.dateDecodingStrategy = .iso8601
    do {
      return try decoder.decode(type, from: Data(json))
    } catch let error as DecodingError {
      throw InvalidJSON(error)
    } catch {
      throw InvalidJSON(path: "", reason: "\(error)")
    }
  }
}

/// A JSON value does not fit a type.
package struct InvalidJSON: Error, Hashable, Sendable, CustomStringConvertible {
  /// The place of the error, such as `steps[2].codec`; empty for the whole value.
  package var path: String
  package var reason: String

  package var description: String { path.isEmpty ? reason : "\(path): \(reason)" }
}

extension InvalidJSON {
  init(_ error: DecodingError) {
    switch error {
    case .keyNotFound(let key, let context):
      self.init(path: Self.path(context.codingPath + [key]), reason: "it is missing")
    case .valueNotFound(let type, let context):
      self.init(path: Self.path(context.codingPath), reason: "it is null, expected \(type)")
    case .typeMismatch(let type, let context):
      self.init(path: Self.path(context.codingPath), reason: "expected \(type)")
    // The text was read as JSON before. Foundation says this, without a place, of numbers that it cannot represent.
    case .dataCorrupted(let context) where context.debugDescription == "The given data was not valid JSON.":
      self.init(
        path: Self.path(context.codingPath),
        reason: "a number does not fit its type (it is too large, or has a fraction)")
    case .dataCorrupted(let context):
      self.init(path: Self.path(context.codingPath), reason: context.debugDescription)
    @unknown default:
      self.init(path: "", reason: "it cannot be decoded")
    }
  }

  fileprivate static func path(_ keys: [any CodingKey]) -> String {
    keys.reduce(into: "") { path, key in
      if let index = key.intValue {
        path += "[\(index)]"
      } else {
        path += path.isEmpty ? key.stringValue : ".\(key.stringValue)"
      }
    }
  }
}
