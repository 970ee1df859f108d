import ReelhaulCodec
import TaskCore

extension JSONReader {
  /// Reads the value of a field into `spec`.
  mutating func read(_ value: TaskField.Value, into spec: inout TaskSpec) throws(DecodingFailure) {
    switch value {
    case .id(let place): place.set(&spec, try uuid())
    case .ids(let place): place.set(&spec, try uuids())
    case .kind(let place): place.set(&spec, TaskKind(rawValue: try string(limit: 64)))
    case .text(let place, let limit), .name(let place, let limit): place.set(&spec, try string(limit: limit))
    case .optionalText(let place, let limit), .optionalName(let place, let limit):
      place.set(&spec, try string(limit: limit))
    case .integer(let place, let range): place.set(&spec, try integer(range))
    case .bytes(let place, let least): place.set(&spec, try integer(least...Int64.max))
    case .time(let place): place.set(&spec, try timestamp())
    case .digest(let place, let count): place.set(&spec, try digest(count: count))
    case .ifExists(let place): place.set(&spec, try choice())
    case .headers(let place): place.set(&spec, try headers())
    case .seconds(let place): place.set(&spec, try intervals())
    case .labels(let place): place.set(&spec, try strings())
    case .flag(let place): place.set(&spec, try bool())
    case .json(let place, _): place.set(&spec, try raw())
    }
  }

  /// Reads `{"name": "value", …}`; the fields come in the order of their names, so that what a store has reordered is
  /// the same again.
  private mutating func headers() throws(DecodingFailure) -> [HeaderField] {
    var fields: [HeaderField] = []
    try object { reader, name throws(DecodingFailure) in
      fields.append(HeaderField(name: name.text, value: try reader.string()))
    }
    return fields.sorted { $0.name < $1.name }
  }

  private mutating func intervals() throws(DecodingFailure) -> [Int] {
    var intervals: [Int] = []
    try array { reader, _ throws(DecodingFailure) in
      intervals.append(try reader.integer(RetryPolicy.intervalSeconds))
    }
    return intervals
  }
}

extension JSONWriter {
  /// Writes the value that a field has in `spec`: a value that is given there.
  mutating func write(_ value: TaskField.Value, of spec: UnsafePointer<TaskSpec>) {
    switch value {
    case .id(let place): uuid(place(spec).pointee)
    case .ids(let place): array { json in for id in place(spec).pointee { json.uuid(id) } }
    case .kind(let place): string(place(spec).pointee.rawValue)
    case .text(let place, _), .name(let place, _): string(place(spec).pointee)
    case .optionalText(let place, _), .optionalName(let place, _): write(place(spec).pointee) { $0.string($1) }
    case .integer(let place, _): integer(place(spec).pointee)
    case .bytes(let place, _): write(place(spec).pointee) { $0.integer($1) }
    case .time(let place): write(place(spec).pointee) { $0.timestamp($1) }
    case .digest(let place, _): write(place(spec).pointee) { $0.string(Hex.encode($1)) }
    case .ifExists(let place): string(place(spec).pointee.rawValue)
    case .headers(let place):
      object { json in
        for field in place(spec).pointee {
          json.name(field.name)
          json.string(field.value)
        }
      }
    case .seconds(let place): array { json in for seconds in place(spec).pointee { json.integer(seconds) } }
    case .labels(let place): strings(place(spec).pointee)
    case .flag(let place): bool(place(spec).pointee)
    case .json(let place, _): write(place(spec).pointee) { $0.raw($1) }
    }
  }

  @inline(__always)
  private mutating func write<Value>(_ value: Value?, _ body: (inout JSONWriter, Value) -> Void) {
    if let value { body(&self, value) } else { null() }
  }
}

extension TaskField.Value {
  /// Whether `spec` has another value than `standard`, a task that was given nothing. The fields that every task has of
  /// its own are always given.
  func isGiven(in spec: UnsafePointer<TaskSpec>, besides standard: UnsafePointer<TaskSpec>) -> Bool {
    switch self {
    case .id, .kind, .text: true
    case .ids(let place): !place(spec).pointee.isEmpty
    case .optionalText(let place, _), .optionalName(let place, _): place(spec).pointee != nil
    case .name(let place, _): place(spec).pointee != place(standard).pointee
    case .integer(let place, _): place(spec).pointee != place(standard).pointee
    case .bytes(let place, _): place(spec).pointee != nil
    case .time(let place): place(spec).pointee != nil
    case .digest(let place, _), .json(let place, _): place(spec).pointee != nil
    case .ifExists(let place): place(spec).pointee != place(standard).pointee
    case .headers(let place): !place(spec).pointee.isEmpty
    case .seconds(let place): !place(spec).pointee.isEmpty
    case .labels(let place): !place(spec).pointee.isEmpty
    case .flag(let place): place(spec).pointee
    }
  }
}
