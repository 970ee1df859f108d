import CReelhaulDashboard
import HTTPServer

extension ControlAPI {
  static let dashboardRoutes = [
    asset("/", "text/html; charset=utf-8", reelhaul_dashboard_html()),
    asset("/assets/dashboard.css", "text/css; charset=utf-8", reelhaul_dashboard_css()),
    asset("/assets/dashboard.js", "text/javascript; charset=utf-8", reelhaul_dashboard_js()),
  ]

  private static func asset(_ path: String, _ type: String, _ text: reelhaul_asset) -> Route {
    let bytes = Array(UnsafeRawBufferPointer(start: text.bytes, count: text.count))
    return Route(
      method: "GET", path: path, summary: "The dashboard.", needs: .nothing, hasAnyQuery: true,
      medium: String(type.prefix { $0 != ";" })
    ) { _, _ in
      HTTPResponse(type: type, bytes)
    }
  }
}
