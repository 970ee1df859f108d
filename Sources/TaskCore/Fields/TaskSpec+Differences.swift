extension TaskSpec {
  /// The names of the fields in which the task differs from another submission with the same id. Fields that can change
  /// later are ignored.
  package func differences(from other: TaskSpec) -> [String] {
    var names: [String] = []
    for field in TaskField.all where field.staysAsSubmitted && !field.value.isSame(in: self, other) {
      if names.last != field.outermostName { names.append(field.outermostName) }
    }
    return names
  }
}

extension TaskField.Value {
  /// Whether two tasks have equal values in this field.
  package func isSame(in a: TaskSpec, _ b: TaskSpec) -> Bool {
    withUnsafePointer(to: a) { a in withUnsafePointer(to: b) { b in isSame(in: a, b) } }
  }

  @inlinable package func isSame(in a: UnsafePointer<TaskSpec>, _ b: UnsafePointer<TaskSpec>) -> Bool {
    switch self {
    case .id(let place): place(a).pointee == place(b).pointee
    case .ids(let place): place(a).pointee == place(b).pointee
    case .kind(let place): place(a).pointee == place(b).pointee
    case .text(let place, _), .name(let place, _): place(a).pointee == place(b).pointee
    case .optionalText(let place, _), .optionalName(let place, _): place(a).pointee == place(b).pointee
    case .integer(let place, _): place(a).pointee == place(b).pointee
    case .bytes(let place, _): place(a).pointee == place(b).pointee
    case .time(let place): place(a).pointee == place(b).pointee
    case .digest(let place, _), .json(let place, _): place(a).pointee == place(b).pointee
    case .ifExists(let place): place(a).pointee == place(b).pointee
    // A store does not keep the order of header fields.
    case .headers(let place): Set(place(a).pointee) == Set(place(b).pointee)
    case .seconds(let place): place(a).pointee == place(b).pointee
    case .labels(let place): place(a).pointee == place(b).pointee
    case .flag(let place): place(a).pointee == place(b).pointee
    }
  }
}
