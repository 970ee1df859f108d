import CommandLineKit
import TaskCore
import WorkerOptions

/// The options of a task, made from the table of its fields.
extension OptionSpec {
  /// For commands that submit a task of a built-in kind, whose handlers need only the fields of the task.
  static let submitting = TaskField.all.compactMap(OptionSpec.init).filter { $0 != parameters }

  /// `--parameters`, for commands that submit tasks of any kind.
  static let parameters = of("parameters")

  /// The option for the field; nil if the command line sets the field in another way.
  init?(_ field: TaskField) {
    guard let option = field.option else { return nil }
    self.init(
      option.name, short: option.short, ValueKind(field.value), valueName: option.valueName,
      default: field.value.standardText, repeatable: field.value.isRepeatable, group: option.group.rawValue,
      help: option.help)
  }

  /// The option of the field that errors name `path`, which must have one.
  private static func of(_ path: String) -> OptionSpec {
    guard let option = TaskField.named(path).flatMap(OptionSpec.init) else {
      preconditionFailure("no option gives \(path)")
    }
    return option
  }
}

extension ValueKind {
  /// A task's priority.
  static let priority = number(in: TaskSpec.priorities)

  fileprivate init(_ value: TaskField.Value) {
    switch value {
    case .integer(_, let range): self = .number(in: range)
    case .bytes: self = .bytes
    case .ifExists: self = .choice(IfExists.allCases.map(\.rawValue))
    case .flag: self = .flag
    case .id, .ids, .kind, .text, .optionalText, .name, .optionalName, .time, .digest, .headers, .seconds, .labels,
      .json:
      self = .text
    }
  }

  private static func number(in range: ClosedRange<Int>) -> ValueKind {
    .integer(Int64(range.lowerBound)...Int64(range.upperBound))
  }
}

extension TaskField.Value {
  fileprivate var isRepeatable: Bool {
    switch self {
    case .ids, .headers, .labels: true
    default: false
    }
  }

  /// The field's default in the form that help shows; nil if there is no default.
  fileprivate var standardText: String? {
    withUnsafePointer(to: TaskSpec.standard) { standard in
      switch self {
      case .name(let place, _): place(standard).pointee
      case .integer(let place, _): "\(place(standard).pointee)"
      case .ifExists(let place): place(standard).pointee.rawValue
      default: nil
      }
    }
  }
}
