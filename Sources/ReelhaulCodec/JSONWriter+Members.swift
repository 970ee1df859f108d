// A member whose value is nil is omitted. `orNull` writes `null` instead, for documents that always have all fields.
extension JSONWriter {
  package mutating func member(_ name: StaticString, _ value: String?) {
    guard let value else { return }
    self.name(name)
    string(value)
  }

  package mutating func member(_ name: StaticString, _ value: Int) {
    self.name(name)
    integer(value)
  }

  package mutating func member(_ name: StaticString, _ value: Int64?) {
    guard let value else { return }
    self.name(name)
    integer(value)
  }

  package mutating func member(_ name: StaticString, _ value: Bool) {
    self.name(name)
    bool(value)
  }

  package mutating func member(_ name: StaticString, orNull value: String?) {
    self.name(name)
    if let value { string(value) } else { null() }
  }

  package mutating func member(_ name: StaticString, orNull value: Int64?) {
    self.name(name)
    if let value { integer(value) } else { null() }
  }

  package mutating func member(_ name: StaticString, _ values: [Int]) {
    self.name(name)
    array { json in
      for value in values { json.integer(value) }
    }
  }

  package mutating func member(_ name: StaticString, _ values: [String]) {
    self.name(name)
    array { json in
      for value in values { json.string(value) }
    }
  }

  package mutating func member(_ name: StaticString, _ values: [String: String]) {
    self.name(name)
    strings(values)
  }

  /// An object whose values are strings, in the order of their names.
  package mutating func strings(_ values: [String: String]) {
    object { json in
      for (key, value) in values.sorted(by: { $0.key < $1.key }) {
        json.name(key)
        json.string(value)
      }
    }
  }
}
