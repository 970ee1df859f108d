import HTTPServer

extension ControlAPI {
  /// Made of the table of routes, so that it names exactly what there is.
  static let descriptionRoutes = ["/openapi.json", "/v1/openapi.json"].map { path in
    Route(
      method: "GET", path: path, summary: "This description, OpenAPI 3.1.", needs: .nothing, gives: .object([])
    ) { api, _ in HTTPResponse(type: json, api.description) }
  }
}
