/// A JSON Schema (draft 2020-12) as a value, in the forms that the API's documents need.
///
/// Put the schema of your documents beside the routes that return them, and give it a name, under which the description
/// has it once, whichever routes use it:
///
///     static let queueUse = JSONSchema.named("QueueUse", .object([
///       .must("queue", .text("The queue's name.")),
///       .must("limit", .integer("How many tasks may run at once.", 0...).orNull),
///       .may("oldestRunnableAgeSeconds", .number("How long its oldest task has been ready.")),
///     ]))
///
///     Route(method: "GET", path: "/v1/queues", …, needs: .read, gives: .object([.must("queues", .list(queueUse))]))
///
/// A query field or a segment of the path that has a schema is also checked by it, with ``problem(ofText:)``.
struct JSONSchema: Sendable {
  indirect enum Form: Sendable {
    case any
    case text(values: [String], format: String?, pattern: String?, length: ClosedRange<Int>?)
    case integer(ClosedRange<Int64>)
    case number
    case flag
    case list(JSONSchema, least: Int, most: Int?)
    /// `isOpen`: other members may follow.
    case object([Member], isOpen: Bool)
    case map(JSONSchema)
    case either([JSONSchema])
    case named(String, JSONSchema)
  }

  struct Member: Sendable {
    let name: String
    let schema: JSONSchema
    let isRequired: Bool

    static func must(_ name: String, _ schema: JSONSchema) -> Member {
      Member(name: name, schema: schema, isRequired: true)
    }

    static func may(_ name: String, _ schema: JSONSchema) -> Member {
      Member(name: name, schema: schema, isRequired: false)
    }
  }

  var form: Form
  var help = ""
  var isNullable = false

  /// As this one, or null.
  var orNull: JSONSchema {
    var schema = self
    schema.isNullable = true
    return schema
  }

  static let any = JSONSchema(form: .any)
  static let id = text("A UUID.", format: "uuid")
  static let time = text("A time, as in 2026-01-31T20:00:00Z.", format: "date-time")

  /// `length` counts characters.
  static func text(
    _ help: String = "", values: [String] = [], format: String? = nil, pattern: String? = nil,
    length: ClosedRange<Int>? = nil
  ) -> JSONSchema {
    JSONSchema(form: .text(values: values, format: format, pattern: pattern, length: length), help: help)
  }

  static func integer(_ help: String = "", _ range: ClosedRange<Int64> = Int64.min...Int64.max) -> JSONSchema {
    JSONSchema(form: .integer(range), help: help)
  }

  static func integer(_ help: String = "", _ range: PartialRangeFrom<Int64>) -> JSONSchema {
    integer(help, range.lowerBound...Int64.max)
  }

  static func number(_ help: String = "") -> JSONSchema { JSONSchema(form: .number, help: help) }

  static func flag(_ help: String = "") -> JSONSchema { JSONSchema(form: .flag, help: help) }

  static func list(_ element: JSONSchema, _ help: String = "", least: Int = 0, most: Int? = nil) -> JSONSchema {
    JSONSchema(form: .list(element, least: least, most: most), help: help)
  }

  /// An answer may get further members in a later version, so it is open; a request's body is not.
  static func object(_ members: [Member], _ help: String = "", isOpen: Bool = true) -> JSONSchema {
    JSONSchema(form: .object(members, isOpen: isOpen), help: help)
  }

  /// An object with any names, whose values all have this schema.
  static func map(_ value: JSONSchema, _ help: String = "") -> JSONSchema { JSONSchema(form: .map(value), help: help) }

  static func either(_ schemas: [JSONSchema], _ help: String = "") -> JSONSchema {
    JSONSchema(form: .either(schemas), help: help)
  }

  static func named(_ name: String, _ schema: JSONSchema) -> JSONSchema { JSONSchema(form: .named(name, schema)) }
}
