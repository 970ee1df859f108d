package struct TopicPartition: Hashable, Sendable, CustomStringConvertible {
  package let topic: String
  package let partition: Int32

  package init(_ topic: String, _ partition: Int32) {
    self.topic = topic
    self.partition = partition
  }

  package var description: String { "\(topic)[\(partition)]" }
}
