/// The only definition of one field of a task. Reading, writing, checking, comparing and the command line follow from
/// it.
///
/// `TaskField.all` is the table of all fields; docs/add-a-field.md describes how to add one.
package struct TaskField: Sendable {
  /// The name in JSON.
  package let name: StaticString
  /// The member of the task that contains the field, such as `expect`; nil if it is a field of the task itself.
  package let object: StaticString?
  package let value: Value
  /// The option of the command line; nil if there is none.
  package let option: Option?
  /// False if the field is not compared when an id is submitted twice.
  let staysAsSubmitted: Bool
  /// A check in addition to the one that the value's type implies.
  let check: (@Sendable (TaskSpec) throws(InvalidTask) -> Void)?

  init(
    _ name: StaticString, in object: StaticString? = nil, _ value: Value, option: Option? = nil,
    staysAsSubmitted: Bool = true, check: (@Sendable (TaskSpec) throws(InvalidTask) -> Void)? = nil
  ) {
    self.name = name
    self.object = object
    self.value = value
    self.option = option
    self.staysAsSubmitted = staysAsSubmitted
    self.check = check
  }

  /// The name in errors: `priority`, `expect.sha256`.
  package var path: String { object.map { "\($0).\(name)" } ?? "\(name)" }

  /// The name in the task's own object: `priority`, `expect`.
  package var outermostName: String { "\(object ?? name)" }
}

extension TaskField {
  /// The type of a field's value, and its place in a task. JSON leaves out a value that equals that of
  /// ``TaskSpec/standard``.
  package enum Value: Sendable {
    case id(Place<UniqueID>)
    case ids(Place<[UniqueID]>)
    case kind(Place<TaskKind>)
    /// At most `limit` bytes.
    case text(Place<String>, limit: Int)
    case optionalText(Place<String?>, limit: Int)
    /// 1 to `limit` letters, digits, `.`, `_` or `-`.
    case name(Place<String>, limit: Int)
    case optionalName(Place<String?>, limit: Int)
    case integer(Place<Int>, ClosedRange<Int>)
    /// A number of bytes, or of bytes a second.
    case bytes(Place<Int64?>, from: Int64)
    case time(Place<Timestamp?>)
    /// `count` bytes; in JSON, hexadecimal digits.
    case digest(Place<[UInt8]?>, count: Int)
    case ifExists(Place<IfExists>)
    case headers(Place<[HeaderField]>)
    case seconds(Place<[Int]>)
    case labels(Place<[String: String]>)
    case flag(Place<Bool>)
    /// Any JSON value, as text without white space between tokens; at most `limit` bytes.
    case json(Place<[UInt8]?>, limit: Int)
  }

  /// The place of a value in a task, as an offset in memory. The codec reads and writes a hundred thousand submits a
  /// second or more, and an offset costs no reference count and no call, unlike a key path.
  package struct Place<Member: Sendable>: Sendable {
    @usableFromInline let offset: Int

    /// `path` must lead to a stored property, through stored properties.
    init(_ path: WritableKeyPath<TaskSpec, Member>) {
      guard let offset = MemoryLayout<TaskSpec>.offset(of: path) else {
        preconditionFailure("\(path) is not a stored property")
      }
      self.offset = offset
    }

    @inlinable package func callAsFunction(_ spec: UnsafePointer<TaskSpec>) -> UnsafePointer<Member> {
      UnsafeRawPointer(spec).advanced(by: offset).assumingMemoryBound(to: Member.self)
    }

    @inlinable package func set(_ spec: inout TaskSpec, _ value: Member) {
      withUnsafeMutablePointer(to: &spec) { spec in
        UnsafeMutableRawPointer(spec).advanced(by: offset).assumingMemoryBound(to: Member.self).pointee = value
      }
    }
  }

  /// The texts of an option of the command line. Its type and default follow from the value.
  package struct Option: Sendable {
    package enum Group: String, Sendable {
      case task = "Task"
      case checks = "Checks"
      case transfer = "Transfer"
    }

    package let name: String
    package let short: Character?
    /// The placeholder in help; nil for the usual one of the value's type.
    package let valueName: String?
    package let group: Group
    package let help: String

    init(_ name: String, short: Character? = nil, _ valueName: String? = nil, group: Group = .task, help: String) {
      self.name = name
      self.short = short
      self.valueName = valueName
      self.group = group
      self.help = help
    }
  }
}

extension TaskSpec {
  /// A task with the defaults of all fields.
  package static let standard = TaskSpec(id: UniqueID(high: 0, low: 0), kind: .download, source: "")
}
