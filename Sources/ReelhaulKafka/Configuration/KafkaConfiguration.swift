import CReelhaulKafka

/// The address of the cluster and the properties of its connections: bootstrap servers and any property of librdkafka.
///
/// The properties contain secrets (`sasl.password`), so they are never printed.
package struct KafkaConfiguration: Sendable, CustomStringConvertible {
  /// `host:port`, separated by commas.
  package let bootstrap: String
  /// librdkafka's properties. They override the defaults of each client, but some belong to the clients and cannot be
  /// set.
  package let properties: [String: String]
  /// Receives the notices of all clients with this configuration.
  package var observer: KafkaObserver

  /// Throws `invalidArgument` if a server is not an address with a port. Also throws it, with the property's name, if
  /// librdkafka does not know a property or refuses its value, or if this module depends on the property.
  package init(
    bootstrap: String, properties: [String: String] = [:], observer: @escaping KafkaObserver = { _ in }
  ) throws(KafkaError) {
    let servers = bootstrap.split(separator: ",")
    guard !servers.isEmpty else {
      throw KafkaError(code: .invalidArgument, message: "no Kafka bootstrap servers are given")
    }
    for server in servers where !Self.isServer(server) {
      let message = "Kafka's address must be HOST:PORT, not \"\(server)\"\(Self.lack(of: server))"
      throw KafkaError(code: .invalidArgument, message: message)
    }
    for (name, value) in properties.sorted(by: { $0.key < $1.key }) {
      try Self.check(name, value)
    }
    self.bootstrap = bootstrap
    self.properties = properties
    self.observer = observer
  }

  package var description: String {
    "Kafka at \(bootstrap)" + properties.keys.sorted().map { ", \($0)" }.joined()
  }

  /// The part that an address most likely lacks, as the end of a sentence.
  private static func lack(of server: Substring) -> String {
    // librdkafka would use port 9092. Kafka's own clients refuse an address without a port.
    if !server.contains(":") { return ": it has no port (Kafka's own is 9092)" }
    let isIPv6 = server.count { $0 == ":" } > 2 && !server.contains("[")
    return isIPv6 ? ": IPv6 is written [ADDRESS]:PORT" : ""
  }

  /// librdkafka would ignore an address that it cannot parse, and wait for a broker until the timeout.
  private static func isServer(_ text: Substring) -> Bool {
    let parts = text.drop { $0 == " " }.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = parts.last, !address.isEmpty, !address.contains("/"),
      parts.count == 1 || ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"].contains(parts[0].lowercased())
    else { return false }
    guard let colon = address.lastIndex(of: ":"), (UInt16(address[address.index(after: colon)...]) ?? 0) > 0 else {
      return false
    }
    let host = address[..<colon]
    let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
    return !host.isEmpty && !host.contains(" ") && (isBracketed || !host.contains(":"))
  }

  /// Properties on which this module's guarantees depend, with the purpose of each.
  private static let reserved: [String: String] = [
    "bootstrap.servers": "the bootstrap servers have their own setting",
    "metadata.broker.list": "the bootstrap servers have their own setting",
    "enable.auto.commit": "offsets are committed when the work is done",
    "enable.auto.offset.store": "offsets are committed when the work is done",
    "auto.commit.enable": "offsets are committed when the work is done",
    "auto.offset.reset": "commands that nobody has read are read from the first one on",
    "enable.partition.eof": "whether the end of a partition is reported is not a matter of settings",
    "partition.assignment.strategy": "all members of the group must use the same strategy",
    "allow.auto.create.topics": "`migrate` creates the topics",
    "delivery.report.only.error": "the program waits for acknowledgements",
    "enable.idempotence": "producers of commands and events are idempotent",
    "acks": "every in-sync copy acknowledges commands and events",
    "request.required.acks": "every in-sync copy acknowledges commands and events",
    "transactional.id": "it is derived from the topic prefix",
    "transaction.timeout.ms": "it follows from the length of the relay leader's lease",
    "isolation.level": "readers accept only committed records",
    "group.id": "the program sets the group",
    "group.instance.id": "the members of a group would shut each other out",
    "log.queue": "the log is read from the event queue",
    "test.mock.num.brokers": "the development broker is started by `up`",
  ]

  static func check(_ name: String, _ value: String) throws(KafkaError) {
    if let reason = reserved[name] {
      throw KafkaError(code: .invalidArgument, message: "Kafka property \(name) cannot be set: \(reason)")
    }
    // Nobody would supply its tokens, and the program would wait for the first one for ever.
    if name.hasPrefix("sasl.mechanism"), value.uppercased() == "OAUTHBEARER" {
      throw KafkaError(code: .invalidArgument, message: "Kafka property \(name): OAUTHBEARER is not supported")
    }
    let scratch = rd_kafka_conf_new()
    defer { rd_kafka_conf_destroy(scratch) }
    switch rd_kafka_conf_set(scratch, name, value, nil, 0) {
    case RD_KAFKA_CONF_OK: break
    case RD_KAFKA_CONF_UNKNOWN:
      throw KafkaError(code: .invalidArgument, message: "Kafka property \(name) is not known to librdkafka")
    default:
      throw KafkaError(code: .invalidArgument, message: "Kafka property \(name): librdkafka refuses its value")
    }
  }
}
