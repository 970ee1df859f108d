/// The server properties of one Apache Kafka node, which is broker and controller, on the loopback interface.
struct ApacheKafkaConfiguration {
  let dataDirectory: String
  let port: Int
  let controllerPort: Int
  /// Further lines, such as other listeners or sizes.
  var extra: [String: String] = [:]

  /// The contents of `server.properties`.
  var properties: String {
    let own = [
      "node.id": "1",
      "process.roles": "broker,controller",
      "controller.quorum.voters": "1@127.0.0.1:\(controllerPort)",
      "listeners": "PLAINTEXT://127.0.0.1:\(port),CONTROLLER://127.0.0.1:\(controllerPort)",
      "advertised.listeners": "PLAINTEXT://127.0.0.1:\(port)",
      "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
      "controller.listener.names": "CONTROLLER",
      "inter.broker.listener.name": "PLAINTEXT",
      "log.dirs": dataDirectory,
      "default.replication.factor": "1",
      "min.insync.replicas": "1",
      "offsets.topic.replication.factor": "1",
      "offsets.topic.num.partitions": "4",
      "transaction.state.log.replication.factor": "1",
      "transaction.state.log.min.isr": "1",
      "transaction.state.log.num.partitions": "4",
      "share.coordinator.state.topic.replication.factor": "1",
      // A single developer should not wait three seconds for other members.
      "group.initial.rebalance.delay.ms": "0",
      "auto.create.topics.enable": "false",
    ]
    return own.merging(extra) { $1 }.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)\n" }.joined()
  }
}
