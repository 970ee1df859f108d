import HTTPServer
import ReelhaulCodec
import TaskStore

/// The description of an API, OpenAPI 3.1, made of its routes.
struct OpenAPI {
  var routes: [Route]
  var version: String
  /// The path below which everything is; empty or such as `/reelhaul`.
  var prefix = ""

  private static let problem = "application/problem+json"
  /// The statuses that any request may get.
  private static let always = [400, 403, 408, 414, 429, 431, 503, 504]

  func encoded() -> [UInt8] {
    let paths = Dictionary(grouping: routes.filter { !$0.path.hasPrefix("/assets") }, by: \.path)
    return JSONWriter.write(capacity: 64 << 10) { json in
      json.object { json in
        json.member("openapi", "3.1.0")
        json.name("info")
        json.object { json in
          json.member("title", "Reelhaul")
          json.member("version", version)
          json.member("description", "Tasks are read from PostgreSQL; commands go through Kafka like everyone's.")
        }
        json.name("servers")
        json.array { json in json.object { $0.member("url", prefix.isEmpty ? "/" : prefix) } }
        json.name("paths")
        json.object { json in
          for (path, routes) in paths.sorted(by: { $0.key < $1.key }) {
            json.name(path)
            json.object { json in
              for route in routes { write(route, to: &json) }
            }
          }
        }
        json.name("components")
        json.object { json in writeComponents(to: &json) }
      }
    }
  }

  private func writeComponents(to json: inout JSONWriter) {
    var schemas: [String: JSONSchema] = [:]
    JSONSchema.problem.collect(into: &schemas)
    for route in routes {
      let bodies = [route.takes, route.gives].compactMap { $0 } + route.refuses.values
      for schema in bodies + route.query.map(\.schema) + route.segments.values {
        schema.collect(into: &schemas)
      }
    }
    json.name("schemas")
    json.object { json in
      for (name, schema) in schemas.sorted(by: { $0.key < $1.key }) {
        json.name(name)
        schema.write(to: &json)
      }
    }
    json.name("responses")
    json.object { json in
      for status in [400, 401, 403, 404, 405, 408, 409, 412, 413, 414, 415, 422, 429, 431, 500, 501, 503, 504] {
        json.name("\(status)")
        json.object { json in
          json.member("description", HTTPResponse.reason(of: status))
          let again = ["Retry-After"]
          let headers = [401: ["WWW-Authenticate"], 405: ["Allow"], 429: again, 503: again, 504: again]
          writeHeaders(headers[status] ?? [], to: &json)
          writeContent([(Self.problem, .problem)], to: &json)
        }
      }
    }
    json.name("securitySchemes")
    json.object { json in
      json.name("token")
      json.object { json in
        json.member("type", "http")
        json.member("scheme", "bearer")
        json.member("description", "A token of `reelhaul token create`.")
      }
      json.name("session")
      json.object { json in
        json.member("type", "apiKey")
        json.member("in", "cookie")
        json.member("name", Session.cookie)
        json.member(
          "description",
          """
          The session of a browser, of POST /v1/session. Where the address has a port, the name ends with `_` and the port; \
          over HTTPS and without a path prefix it begins with `__Host-`.
          """
        )
      }
    }
  }

  private func write(_ route: Route, to json: inout JSONWriter) {
    json.name(route.method.lowercased())
    json.object { json in
      json.member("operationId", Self.name(of: route))
      json.member("summary", route.summary)
      writeSecurity(route, to: &json)
      json.name("parameters")
      json.array { json in
        for case .named(let name) in route.pattern {
          write(name, in: "path", help: "", route.segments[name] ?? .text(length: 1...200), to: &json)
        }
        for field in route.query { write(field.name, in: "query", help: field.help, field.whole, to: &json) }
        for field in route.headers { write(field.name, in: "header", help: field.help, field.schema, to: &json) }
      }
      writeBody(of: route, to: &json)
      json.name("responses")
      json.object { json in writeAnswers(of: route, to: &json) }
    }
  }

  private func writeSecurity(_ route: Route, to json: inout JSONWriter) {
    json.name("security")
    json.array { json in
      guard case .scope = route.need else { return }
      for scheme in ["token", "session"] {
        json.object { json in
          json.name(scheme)
          json.array { _ in }
        }
      }
    }
    if case .scope(let scope) = route.need {
      json.member("x-scope", scope.rawValue)
      json.member("x-per-queue", route.isPerQueue)
    }
  }

  private func writeBody(of route: Route, to json: inout JSONWriter) {
    guard !route.accepts.isEmpty else { return }
    json.name("requestBody")
    json.object { json in
      json.member("required", route.needsBody)
      json.name("content")
      json.object { json in
        for type in route.accepts {
          json.name(type)
          json.object { json in
            guard type == ControlAPI.json else {
              json.name("schema")
              return json.object { $0.member("type", "string") }
            }
            json.name("schema")
            (route.takes ?? .object([])).write(to: &json)
            if let example = route.example {
              json.name("example")
              json.raw(Array(example.utf8))
            }
          }
        }
      }
    }
  }

  private func writeAnswers(of route: Route, to json: inout JSONWriter) {
    var statuses = Set(route.answers + Self.always)
    if case .scope = route.need { statuses.insert(401) }
    if !route.accepts.isEmpty { statuses.formUnion([413, 415, 422]) }
    if route.pattern.contains(where: { if case .named = $0 { true } else { false } }) {
      statuses.formUnion([404, 405])
    }
    // A stream has no entity tag.
    let isTagged = route.method == "GET" && route.medium != "text/event-stream"
    for status in statuses.sorted() {
      json.name("\(status)")
      json.object { json in
        let refused = route.refuses[status]
        guard status < 300 || refused != nil else {
          return json.member("$ref", "#/components/responses/\(status)")
        }
        json.member("description", HTTPResponse.reason(of: status))
        writeHeaders(status == 200 && isTagged ? ["ETag"] : [], to: &json)
        guard status != 204 else { return }
        if let refused { return writeContent([(ControlAPI.json, refused), (Self.problem, .problem)], to: &json) }
        let isJSON = route.medium == ControlAPI.json
        writeContent([(route.medium, route.gives ?? (isJSON ? .object([]) : .text()))], to: &json)
      }
    }
    if isTagged, route.answers.contains(200) {
      json.name("304")
      json.object { $0.member("description", HTTPResponse.reason(of: 304)) }
    }
  }

  /// A body of any of these media types.
  private func writeContent(_ bodies: [(type: String, schema: JSONSchema)], to json: inout JSONWriter) {
    json.name("content")
    json.object { json in
      for (type, schema) in bodies {
        json.name(type)
        json.object { json in
          json.name("schema")
          schema.write(to: &json)
        }
      }
    }
  }

  private func writeHeaders(_ more: [String], to json: inout JSONWriter) {
    json.name("headers")
    json.object { json in
      for name in ["X-Request-Id"] + more {
        json.name(name)
        json.object { json in
          json.name("schema")
          json.object { $0.member("type", "string") }
        }
      }
    }
  }

  private func write(
    _ name: String, in place: String, help: String, _ schema: JSONSchema, to json: inout JSONWriter
  ) {
    json.object { json in
      json.member("name", name)
      json.member("in", place)
      json.member("required", place == "path")
      if !help.isEmpty { json.member("description", help) }
      if case .list = schema.form, place == "query" {
        json.member("style", "form")
        json.member("explode", false)
      }
      json.name("schema")
      schema.write(to: &json)
    }
  }

  /// Such as `get_v1_tasks_id`.
  private static func name(of route: Route) -> String {
    ([route.method.lowercased()]
      + route.pattern.map { segment in
        switch segment {
        case .fixed(let text): text.replacing { !($0.isLetter || $0.isNumber) }
        case .named(let name): name
        }
      }).joined(separator: "_")
  }
}

extension String {
  /// With `_` for the characters of which this is true.
  fileprivate func replacing(_ isWrong: (Character) -> Bool) -> String { String(map { isWrong($0) ? "_" : $0 }) }
}
