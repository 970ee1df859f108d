import ReelhaulCodec

extension JSONSchema {
  /// Writes the schema; a named one as a reference to the components of an OpenAPI document.
  func write(to json: inout JSONWriter) {
    json.object { json in
      if case .named(let name, _) = form, isNullable {
        json.name("anyOf")
        json.array { json in
          json.object { $0.member("$ref", "#/components/schemas/\(name)") }
          json.object { $0.member("type", "null") }
        }
      } else {
        writeForm(to: &json)
      }
      if !help.isEmpty { json.member("description", help) }
    }
  }

  private func writeForm(to json: inout JSONWriter) {
    switch form {
    case .any: break
    case .named(let name, _): json.member("$ref", "#/components/schemas/\(name)")
    case .text(let values, let format, let pattern, let length):
      type("string", to: &json)
      if !values.isEmpty {
        json.name("enum")
        json.array { json in
          for value in values { json.string(value) }
          if isNullable { json.null() }
        }
      }
      if let format { json.member("format", format) }
      if let pattern { json.member("pattern", pattern) }
      if let length {
        json.member("minLength", length.lowerBound)
        json.member("maxLength", length.upperBound)
      }
    case .integer(let range):
      type("integer", to: &json)
      // A number beyond 2^53 is not one for many readers.
      json.member("format", "int64")
      if range.lowerBound != .min { json.member("minimum", range.lowerBound) }
      if range.upperBound != .max { json.member("maximum", range.upperBound) }
    case .number: type("number", to: &json)
    case .flag: type("boolean", to: &json)
    case .list(let element, let least, let most):
      type("array", to: &json)
      json.name("items")
      element.write(to: &json)
      if least > 0 { json.member("minItems", least) }
      if let most { json.member("maxItems", most) }
    case .object(let members, let isOpen):
      type("object", to: &json)
      json.name("properties")
      json.object { json in
        for member in members {
          json.name(member.name)
          // In a body, null is as good as nothing.
          let schema = isOpen || member.isRequired ? member.schema : member.schema.orNull
          schema.write(to: &json)
        }
      }
      let required = members.filter(\.isRequired).map(\.name)
      if !required.isEmpty { json.member("required", required) }
      if !isOpen { json.member("additionalProperties", false) }
    case .map(let value):
      type("object", to: &json)
      json.name("additionalProperties")
      value.write(to: &json)
    case .either(let schemas):
      json.name("anyOf")
      json.array { json in
        for schema in schemas { schema.write(to: &json) }
        if isNullable { json.object { $0.member("type", "null") } }
      }
    }
  }

  private func type(_ name: String, to json: inout JSONWriter) {
    if isNullable { json.member("type", [name, "null"]) } else { json.member("type", name) }
  }

  /// Adds the named schemas of this one, and of its parts.
  func collect(into components: inout [String: JSONSchema]) {
    switch form {
    case .any, .text, .integer, .number, .flag: break
    case .list(let element, _, _): element.collect(into: &components)
    case .map(let value): value.collect(into: &components)
    case .object(let members, _): for member in members { member.schema.collect(into: &components) }
    case .either(let schemas): for schema in schemas { schema.collect(into: &components) }
    case .named(let name, let schema):
      guard components.updateValue(schema, forKey: name) == nil else { return }
      schema.collect(into: &components)
    }
  }
}
