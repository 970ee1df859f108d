import ReelhaulKafka
import Testing

@Suite struct ConfigurationTests {
  @Test(
    "valid bootstrap addresses are accepted",
    arguments: [
      "a:9092", "a:9092,b:9093", "10.0.0.1:1, [::1]:9092", "SASL_SSL://a:9092", "[::1]:9092", "a:9092,",
    ])
  func takesAddresses(bootstrap: String) throws {
    #expect(try KafkaConfiguration(bootstrap: bootstrap).bootstrap == bootstrap)
  }

  @Test(
    "invalid bootstrap addresses are refused",
    arguments: [
      "", "http://a:9092", "a:", "a:0", "a:65536", ":9092", "a:9092/x", "a:x", "a:9092,kafka://b", "ssl://",
      "a", "a:9092,b", "[::1]", "ssl://a", "::1:9092", "a :9092", "[::1:9092",
    ])
  func refusesInvalidAddresses(bootstrap: String) {
    let error = #expect(throws: KafkaError.self) { try KafkaConfiguration(bootstrap: bootstrap) }
    #expect(error?.code == .invalidArgument)
  }

  @Test("an IPv6 address without brackets is refused with the right form")
  func saysHowIPv6IsWritten() {
    let error = #expect(throws: KafkaError.self) { try KafkaConfiguration(bootstrap: "::1:9092") }
    #expect(error?.message == "Kafka's address must be HOST:PORT, not \"::1:9092\": IPv6 is written [ADDRESS]:PORT")
  }

  /// Kafka's own clients do the same: a name without a port is usually a mistake.
  @Test("an address without a port is refused")
  func saysThatAPortIsMissing() {
    let error = #expect(throws: KafkaError.self) { try KafkaConfiguration(bootstrap: "a:9092,b") }
    #expect(error?.message == "Kafka's address must be HOST:PORT, not \"b\": it has no port (Kafka's own is 9092)")
  }

  @Test("properties are read from the environment, and secrets are not printed")
  func readsPropertiesFromTheEnvironment() throws {
    let configuration = try KafkaConfiguration.fromEnvironment([
      "REELHAUL_KAFKA": "a:9092,b:9092", "REELHAUL_KAFKA_SECURITY_PROTOCOL": "sasl_plaintext",
      "REELHAUL_KAFKA_SASL_MECHANISM": "PLAIN", "REELHAUL_KAFKA_SASL_PASSWORD": "secret",
      "REELHAUL_POSTGRES": "postgres://x", "KAFKA_HOME": "/x",
    ])
    #expect(configuration?.bootstrap == "a:9092,b:9092")
    #expect(
      configuration?.properties == [
        "security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.password": "secret",
      ])
    #expect(configuration?.description.contains("secret") == false)
    #expect(try KafkaConfiguration.fromEnvironment([:])?.bootstrap == nil)
  }

  @Test(
    "a wrong property is refused with its variable and the reason",
    arguments: [
      ("REELHAUL_KAFKA_NO_SUCH_THING", "1", "no.such.thing is not known"),
      ("REELHAUL_KAFKA_SECURITY_PROTOCOL", "carrier_pigeon", "refuses its value"),
      ("REELHAUL_KAFKA_SECURITY_PROTOCOL", "SASL_SSL", "REELHAUL_KAFKA_SASL_MECHANISM must name the mechanism"),
      ("REELHAUL_KAFKA_SASL_MECHANISM", "OAUTHBEARER", "not supported"),
      ("REELHAUL_KAFKA_AUTO_OFFSET_RESET", "latest", "cannot be set"),
      ("REELHAUL_KAFKA_GROUP_INSTANCE_ID", "one", "cannot be set"),
      ("REELHAUL_KAFKA_ENABLE_AUTO_COMMIT", "true", "cannot be set"),
      ("REELHAUL_KAFKA_ENABLE_IDEMPOTENCE", "false", "cannot be set"),
      ("REELHAUL_KAFKA_ACKS", "1", "cannot be set"),
      ("REELHAUL_KAFKA_REQUEST_REQUIRED_ACKS", "all", "cannot be set"),
      ("REELHAUL_KAFKA_TRANSACTIONAL_ID", "mine", "cannot be set"),
      ("REELHAUL_KAFKA_TRANSACTION_TIMEOUT_MS", "60000", "cannot be set"),
      ("REELHAUL_KAFKA_ISOLATION_LEVEL", "read_uncommitted", "cannot be set"),
    ])
  func namesWhatIsWrong(variable: String, value: String, reason: String) throws {
    let error = #expect(throws: KafkaError.self) {
      try KafkaConfiguration.fromEnvironment(["REELHAUL_KAFKA": "a:9092", variable: value])
    }
    #expect(error?.message.contains(reason) == true)
    #expect(error?.message.contains(variable) == true)
  }

  @Test("two underscores in a variable stand for one in the property")
  func aDoubledUnderscoreIsAnUnderscore() throws {
    let error = #expect(throws: KafkaError.self) {
      try KafkaConfiguration.fromEnvironment(["REELHAUL_KAFKA": "a:9092", "REELHAUL_KAFKA_A__B_C": "1"])
    }
    #expect(error?.message.contains("a_b.c") == true)
  }
}
