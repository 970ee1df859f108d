/// An answer with a short body.
package struct CurlAnswer: Sendable {
  package var head: CurlHead
  package var body: [UInt8]

  package var status: Int { head.status }
  package var isSuccess: Bool { (200..<300).contains(head.status) }
}

/// Keeps an answer in memory.
// @unchecked: used only on the client's loop, and after its end by the caller.
package final class CurlAnswerCollector: CurlHandler, @unchecked Sendable {
  private let limit: Int
  package private(set) var answer: CurlAnswer?
  /// Whether there is more than is kept. The status says already what became of the request.
  package private(set) var isFull = false

  package init(limit: Int) {
    self.limit = limit
  }

  /// The answer, if it is one that ends a request before its body is sent.
  package var refusal: CurlAnswer? { answer.flatMap { $0.status >= 300 ? $0 : nil } }

  package func receive(head: CurlHead, of transfer: CurlTransfer) -> CurlVerdict {
    answer = CurlAnswer(head: head, body: [])
    return .continue
  }

  package func receive(body: UnsafeRawBufferPointer, of transfer: CurlTransfer) -> CurlVerdict {
    let room = limit - (answer?.body.count ?? limit)
    answer?.body.append(contentsOf: body.prefix(room))
    isFull = body.count > room
    return isFull ? .abort : .continue
  }
}
