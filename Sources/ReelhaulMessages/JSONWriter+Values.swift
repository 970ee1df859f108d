import ReelhaulCodec
import TaskCore

extension JSONWriter {
  package mutating func uuid(_ value: UniqueID) {
    ascii(UniqueID.textLength, value.write)
  }

  package mutating func timestamp(_ value: Timestamp) {
    ascii(Timestamp.textLength, value.write)
  }

  package mutating func member(_ name: StaticString, _ value: UniqueID?) {
    guard let value else { return }
    self.name(name)
    uuid(value)
  }

  package mutating func member(_ name: StaticString, orNull value: UniqueID?) {
    self.name(name)
    if let value { uuid(value) } else { null() }
  }

  package mutating func member(_ name: StaticString, _ value: Timestamp?) {
    guard let value else { return }
    self.name(name)
    timestamp(value)
  }

  package mutating func member(_ name: StaticString, orNull value: Timestamp?) {
    self.name(name)
    if let value { timestamp(value) } else { null() }
  }

  package mutating func member(_ name: StaticString, hex value: [UInt8]?) {
    member(name, value.map { Hex.encode($0) })
  }

  package mutating func member(_ name: StaticString, _ values: [UniqueID]) {
    self.name(name)
    array { json in
      for value in values { json.uuid(value) }
    }
  }
}
