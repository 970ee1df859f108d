import Codec
import TaskCore

extension JSONWriter {
  package mutating func member(_ name: StaticString, _ value: UUID?) {
    member(name, value?.description)
  }

  package mutating func member(_ name: StaticString, orNull value: UUID?) {
    member(name, orNull: value?.description)
  }

  package mutating func member(_ name: StaticString, _ value: Timestamp?) {
    member(name, value?.description)
  }

  package mutating func member(_ name: StaticString, orNull value: Timestamp?) {
    member(name, orNull: value?.description)
  }

  package mutating func member(_ name: StaticString, hex value: [UInt8]?) {
    member(name, value.map { Hex.encode($0) })
  }

  package mutating func member(_ name: StaticString, _ values: [UUID]) {
    self.name(name)
    array { json in
      for value in values { json.string(value.description) }
    }
  }
}
