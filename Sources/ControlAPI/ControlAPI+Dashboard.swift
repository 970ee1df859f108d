import CReelhaulDashboard
import HTTPServer

extension ControlAPI {
  /// The files of the page. They have entity tags like every answer, so that a browser that has them asks and gets nothing.
  static let dashboardRoutes: [Route] = {
    var count = 0
    let assets = reelhaul_dashboard_assets(&count)
    return UnsafeBufferPointer(start: assets, count: count).map(route)
  }()

  private static func route(_ asset: reelhaul_asset) -> Route {
    let bytes = Array(UnsafeRawBufferPointer(start: asset.bytes, count: asset.count))
    let type = String(cString: asset.type)
    return Route(
      method: "GET", path: String(cString: asset.path), summary: "The dashboard.", needs: .nothing, hasAnyQuery: true,
      medium: String(type.prefix { $0 != ";" })
    ) { _, _ in HTTPResponse(headers: ["Cache-Control": "no-cache"], type: type, bytes) }
  }
}
