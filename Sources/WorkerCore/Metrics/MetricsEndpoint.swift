import HTTPServer
import ReelhaulTelemetry

/// What a worker serves on its own port: `/metrics`, and `/healthz`, which says that the control loop runs. An outage of
/// PostgreSQL or Kafka must not have workers restarted, so nobody is asked.
struct MetricsEndpoint: HTTPHandler {
  let worker: Worker

  func admit(_ head: HTTPRequest) async -> HTTPAdmission {
    .refused(.problem(400, "\(head.method) \(head.path.prefix(200)) takes no body"))
  }

  func answer(_ request: HTTPRequest) async -> HTTPResponse {
    let isRead = request.method == "GET" || request.method == "HEAD"
    switch request.path {
    case "/metrics", "/healthz":
      guard isRead else {
        var response = HTTPResponse.problem(405, "\(request.method) is not possible here")
        response.headers["Allow"] = "GET"
        return response
      }
    default: return .problem(404, "there are only /metrics and /healthz")
    }
    guard request.path == "/metrics" else { return HTTPResponse(type: "text/plain", Array("ok\n".utf8)) }
    let text = await worker.metricsSnapshot()
    return HTTPResponse(type: type(of: text).contentType, text.bytes)
  }
}
