import ReelhaulCodec
import TaskCore

/// The members of a task's JSON object, made from ``TaskField/all`` once.
///
/// A name is found by its hash in one step, and a member is plain data without references: 100,000 tasks a second are
/// read and written by this table.
// @unchecked: nobody writes to the memory behind `standard`.
struct TaskFieldTable: @unchecked Sendable {
  /// A field, or an object of some.
  struct Member: Sendable {
    let name: StaticString
    /// The fields: of an object its members, otherwise the field itself.
    let fields: Range<Int>
    let isObject: Bool
  }

  struct Field: Sendable {
    let name: StaticString
    let value: TaskField.Value
  }

  static let tasks = TaskFieldTable(TaskField.all)

  /// The names of a task's members.
  let names: [String]
  let members: [Member]
  let fields: [Field]
  /// For each value of ``slot(of:)`` the member whose name has it, or `none`.
  private let slots: [UInt8]
  private let multiplier: UInt64
  /// A task that was given nothing, in memory of its own for as long as the process lives.
  private let standard: UnsafePointer<TaskSpec>

  private static let none = UInt8.max
  private static let slotBits = 7

  init(_ all: [TaskField]) {
    var members: [Member] = []
    for (index, field) in all.enumerated() {
      if let object = field.object, let last = members.last, last.isObject, "\(last.name)" == "\(object)" {
        members[members.count - 1] = Member(name: object, fields: last.fields.lowerBound..<index + 1, isObject: true)
      } else {
        members.append(
          Member(name: field.object ?? field.name, fields: index..<index + 1, isObject: field.object != nil))
      }
    }
    self.members = members
    names = members.map { "\($0.name)" }
    fields = all.map { Field(name: $0.name, value: $0.value) }
    // The first odd multiplier under which no two names share a slot.
    let hashes = members.map { JSONName.hash(of: $0.name) }
    var multiplier: UInt64 = 1
    while Set(hashes.map { Self.slot(of: $0, multiplier) }).count < hashes.count { multiplier += 2 }
    self.multiplier = multiplier
    var slots = [UInt8](repeating: Self.none, count: 1 << Self.slotBits)
    for (index, hash) in hashes.enumerated() { slots[Self.slot(of: hash, multiplier)] = UInt8(index) }
    self.slots = slots
    let memory = UnsafeMutablePointer<TaskSpec>.allocate(capacity: 1)
    memory.initialize(to: .standard)
    self.standard = UnsafePointer(memory)
  }

  /// The number of the member with this name; nil if there is no such member.
  func index(of name: JSONName) -> Int? {
    let index = slots[Self.slot(of: name.hash, multiplier)]
    guard index != Self.none, members[Int(index)].name ~= name else { return nil }
    return Int(index)
  }

  /// The number of the member called `name`, for what treats one of them in a way of its own.
  func index(named name: String) -> Int {
    guard let index = names.firstIndex(of: name) else { preconditionFailure("a task has no member \(name)") }
    return index
  }

  private static func slot(of hash: UInt64, _ multiplier: UInt64) -> Int {
    Int((hash &* multiplier) >> (64 - UInt64(slotBits)))
  }
}

// MARK: Reading and writing

extension TaskFieldTable {
  /// Reads the value of the member `index` into `spec`.
  func read(_ index: Int, from reader: inout JSONReader, into spec: inout TaskSpec) throws(DecodingFailure) {
    let member = members[index]
    guard member.isObject else {
      return try reader.read(fields[member.fields.lowerBound].value, into: &spec)
    }
    let known = reader.refusesUnknownNames ? fields[member.fields].map { "\($0.name)" } : nil
    try reader.object(known: known) { reader, name throws(DecodingFailure) in
      for field in fields[member.fields] where field.name ~= name {
        return try reader.read(field.value, into: &spec)
      }
      try reader.skip()
    }
  }

  /// Writes all members of `spec` that are not as by default.
  func write(_ spec: TaskSpec, to json: inout JSONWriter) {
    withUnsafePointer(to: spec) { spec in
      for member in members {
        if member.isObject {
          guard member.fields.contains(where: { fields[$0].value.isGiven(in: spec, besides: standard) }) else {
            continue
          }
          json.name(member.name)
          json.object { json in write(fields: member.fields, of: spec, to: &json) }
        } else {
          write(fields: member.fields, of: spec, to: &json)
        }
      }
    }
  }

  /// Writes the object `name`, even if it has no members.
  func write(object name: String, of spec: TaskSpec, to json: inout JSONWriter) {
    let member = members[index(named: name)]
    withUnsafePointer(to: spec) { spec in
      json.name(member.name)
      json.object { json in write(fields: member.fields, of: spec, to: &json) }
    }
  }

  private func write(fields range: Range<Int>, of spec: UnsafePointer<TaskSpec>, to json: inout JSONWriter) {
    for index in range where fields[index].value.isGiven(in: spec, besides: standard) {
      json.name(fields[index].name)
      json.write(fields[index].value, of: spec)
    }
  }
}
