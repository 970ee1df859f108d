/// One field of a task, said once: reading, writing, checking, comparing and the command line follow from it.
///
/// `TaskField.all` is the table. docs/add-a-field.md says how a field gets into it.
package struct TaskField: Sendable {
  /// The name in JSON.
  package let name: StaticString
  /// The member of the task that holds the field, such as `expect`; nil where the task itself does.
  package let object: StaticString?
  package let value: Value
  /// How the command line gives it; nil where it is no option.
  package let option: Option?
  /// False for a field that may differ from the submission: it can be changed later.
  let staysAsSubmitted: Bool
  /// What the value's kind does not check already.
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

  /// As errors name it: `priority`, `expect.sha256`.
  package var path: String { object.map { "\($0).\(name)" } ?? "\(name)" }

  /// The name in the task's own object: `priority`, `expect`.
  package var outermostName: String { "\(object ?? name)" }
}

extension TaskField {
  /// What a field holds, and where. A value that is as in ``TaskSpec/standard`` is left out of JSON.
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
    /// So many bytes, in JSON as hexadecimal digits.
    case digest(Place<[UInt8]?>, count: Int)
    case ifExists(Place<IfExists>)
    case headers(Place<[HeaderField]>)
    case seconds(Place<[Int]>)
    case labels(Place<[String: String]>)
    case flag(Place<Bool>)
    /// A JSON value of any kind, as its text without white space between tokens; at most `limit` bytes.
    case json(Place<[UInt8]?>, limit: Int)
  }

  /// Where a value is within a task: its offset in memory. Submits are read and written by the hundred thousand a second,
  /// and an offset costs neither a reference count nor a call, which a key path does.
  package struct Place<Member: Sendable>: Sendable {
    @usableFromInline let offset: Int

    /// `path` must lead to a stored property, through stored properties.
    init(_ path: WritableKeyPath<TaskSpec, Member>) {
      guard let offset = MemoryLayout<TaskSpec>.offset(of: path) else {
        preconditionFailure("\(path) is no stored property")
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

  /// An option of the command line: the words; its kind and its default follow from the value.
  package struct Option: Sendable {
    package enum Group: String, Sendable {
      case task = "Task"
      case checks = "Checks"
      case transfer = "Transfer"
    }

    package let name: String
    package let short: Character?
    /// The placeholder in help; nil for that of the value's kind.
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
  /// A task that was given nothing: the defaults of all fields.
  package static let standard = TaskSpec(id: UniqueID(high: 0, low: 0), kind: .download, source: "")
}
