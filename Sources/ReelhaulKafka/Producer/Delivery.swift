/// The position of an acknowledged message.
package struct Delivery: Hashable, Sendable {
  package let partition: Int32
  package let offset: Int64
}

/// The result of each message of a batch, by its index.
package struct Deliveries: Sendable {
  let slots: [SendBatch.Result]
  let trouble: KafkaError?

  package var count: Int { slots.count }

  package subscript(index: Int) -> Result<Delivery, KafkaError> {
    let slot = slots[index]
    if slot.code == KafkaError.Code.none.rawValue {
      return .success(Delivery(partition: slot.partition, offset: slot.offset))
    }
    return .failure(SendBatch.error(slot.code).because(of: trouble))
  }

  /// Indices of the messages that were not acknowledged. Such a message may still have been written.
  package var failures: [Int] {
    slots.indices.filter { slots[$0].code != KafkaError.Code.none.rawValue }
  }
}
