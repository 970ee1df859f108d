extension ControlAPI {
  static let json = "application/json"

  static let taskRoutes = listRoutes + submitRoutes + showRoutes + actionRoutes
}
