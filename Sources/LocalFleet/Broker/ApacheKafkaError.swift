/// Why a local Apache Kafka does not run, and what to do about it.
package struct ApacheKafkaError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String
}
