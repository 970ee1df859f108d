extension KafkaConfiguration {
  /// Reads `REELHAUL_KAFKA` (bootstrap servers) and every `REELHAUL_KAFKA_<PROPERTY>`. The property's name is in lower
  /// case, with `.` for `_` and `_` for `__`, so `REELHAUL_KAFKA_SECURITY_PROTOCOL` sets `security.protocol`. Nil
  /// without bootstrap servers.
  ///
  /// Throws like ``init(bootstrap:properties:observer:)`` and names the variable. Also throws if SASL is set without
  /// its mechanism.
  package static func fromEnvironment(
    _ environment: [String: String], observer: @escaping KafkaObserver = { _ in }
  ) throws(KafkaError) -> KafkaConfiguration? {
    guard let bootstrap = environment["REELHAUL_KAFKA"], !bootstrap.isEmpty else { return nil }
    var properties: [String: String] = [:]
    for (variable, value) in environment.sorted(by: { $0.key < $1.key }) {
      guard variable.hasPrefix(prefix), variable.count > prefix.count else { continue }
      let name = property(variable.dropFirst(prefix.count))
      do {
        try check(name, value)
      } catch {
        throw KafkaError(code: error.code, message: "\(variable): \(error.message)")
      }
      properties[name] = value
    }
    // librdkafka would use Kerberos, which is rarely meant.
    if let security = properties["security.protocol"], security.uppercased().hasPrefix("SASL"),
      properties["sasl.mechanism"] == nil, properties["sasl.mechanisms"] == nil
    {
      throw KafkaError(
        code: .invalidArgument,
        message: "\(prefix)SECURITY_PROTOCOL is \(security): \(prefix)SASL_MECHANISM must name the mechanism "
          + "(PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, or GSSAPI for Kerberos)")
    }
    return try KafkaConfiguration(bootstrap: bootstrap, properties: properties, observer: observer)
  }

  private static let prefix = "REELHAUL_KAFKA_"

  static func property(_ variable: Substring) -> String {
    var name = ""
    var characters = variable[...]
    while let next = characters.popFirst() {
      if next != "_" {
        name += next.lowercased()
      } else if characters.first == "_" {
        characters.removeFirst()
        name += "_"
      } else {
        name += "."
      }
    }
    return name
  }
}
