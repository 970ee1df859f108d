import HTTPServer
import ReelhaulCodec

extension ControlAPI {
  static let descriptionRoute = Route(
    method: "GET", path: "/v1/openapi.json", summary: "This description, OpenAPI 3.1."
  ) { api, _ in HTTPResponse(type: json, api.description) }

  /// Made of the table of routes, so that it names exactly what there is.
  private var description: [UInt8] {
    let paths = Dictionary(grouping: Self.routes.filter { !$0.path.hasPrefix("/assets") }, by: \.path)
    return JSONWriter.write(capacity: 16 << 10) { json in
      json.object { json in
        json.member("openapi", "3.1.0")
        json.name("info")
        json.object { json in
          json.member("title", "Reelhaul")
          json.member("version", version)
          json.member("description", "Tasks are read from PostgreSQL; commands go through Kafka like everyone's.")
        }
        json.name("paths")
        json.object { json in
          for (path, routes) in paths.sorted(by: { $0.key < $1.key }) {
            json.name(path)
            json.object { json in
              for route in routes { Self.write(route, to: &json) }
            }
          }
        }
      }
    }
  }

  private static func write(_ route: Route, to json: inout JSONWriter) {
    json.name(route.method.lowercased())
    json.object { json in
      json.member("summary", route.summary)
      let names = route.path.split(separator: "/").filter { $0.hasPrefix("{") }.map {
        String($0.dropFirst().dropLast())
      }
      json.name("parameters")
      json.array { json in
        for name in names { write(name, in: "path", help: "", values: [], to: &json) }
        for field in route.query {
          write(field.name, in: "query", help: field.help, values: field.isList ? [] : field.values, to: &json)
        }
      }
      if !route.accepts.isEmpty {
        json.name("requestBody")
        json.object { json in
          json.name("content")
          json.object { json in
            for type in route.accepts {
              json.name(type)
              json.object { _ in }
            }
          }
        }
      }
      json.name("responses")
      json.object { json in
        for status in Set(route.answers + [400, 403, 503]).sorted() {
          json.name("\(status)")
          json.object { $0.member("description", HTTPResponse.reason(of: status)) }
        }
      }
    }
  }

  private static func write(
    _ name: String, in place: String, help: String, values: [String], to json: inout JSONWriter
  ) {
    json.object { json in
      json.member("name", name)
      json.member("in", place)
      json.member("required", place == "path")
      json.member("description", help)
      json.name("schema")
      json.object { json in
        json.member("type", "string")
        if !values.isEmpty { json.member("enum", values) }
      }
    }
  }
}
