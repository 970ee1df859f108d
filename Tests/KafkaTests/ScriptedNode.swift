import Glibc
import ReelhaulSystem
import TestKit

/// A node of a cluster that answers as the test says. It knows as much of Kafka's protocol as `migrate` needs:
/// metadata, creating topics, and their settings.
final class ScriptedNode: Sendable {
  enum Request: Int16, Sendable {
    case metadata = 3
    case versions = 18
    case createTopics = 19
    case describeConfigs = 32
  }

  private struct State {
    let unknownFor: Int
    let absentControllerFor: Int
    let absentController: Int
    /// The requests in order, except those for versions.
    var asked: [Request] = []
    var topics: [String] = []
    var isSilent = false
  }

  let port: UInt16
  private let listener: Int32
  private let state: Lock<State>

  /// - Parameters:
  ///   - unknownFor: how often settings are asked before the node knows the topics that it has created.
  ///   - absentControllerFor: how often the cluster is asked while its controller is `absentController`: node 2 is not
  ///     there, and -1 is none.
  init(unknownFor: Int = 0, absentControllerFor: Int = 0, absentController: Int = 2) throws {
    state = Lock(
      State(unknownFor: unknownFor, absentControllerFor: absentControllerFor, absentController: absentController))
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, size) == 0 && listen(listener, 8) == 0 ? getsockname(listener, address, &size) : -1
      }
    }
    guard result == 0 else { throw SystemError.last("listen on 127.0.0.1") }
    port = UInt16(bigEndian: address.sin_port)
    Thread(name: "scripted-node") { [self] in
      while case let client = LoopbackPort.accept(listener), client >= 0 {
        Thread(name: "scripted-client") { [self] in
          serve(client)
          Glibc.close(client)
        }.detach()
      }
      Glibc.close(listener)
    }.detach()
  }

  var asked: [Request] { state.withLock { $0.asked } }

  /// Answers nothing from now on, and keeps its connections, as a node that hangs.
  func hang() { state.withLock { $0.isSilent = true } }

  func close() {
    shutdown(listener, Int32(SHUT_RDWR))
  }

  private func serve(_ client: Int32) {
    while let head = receive(4, client), let body = receive(Wire.length(head), client) {
      guard !state.withLock({ $0.isSilent }) else { continue }
      var request = Wire(body)
      let kind = Request(rawValue: Int16(truncatingIfNeeded: request.int16()))
      let version = request.int16()
      var answer = Wire([])
      answer.put(request.int32(), bytes: 4)
      _ = request.text()
      guard let kind else { return }
      // The first request for versions has a version that is too new; later requests use the version of the answer.
      if kind == .versions { answer.put(version == 0 ? 0 : 35, bytes: 2) }
      state.withLock { Self.answer(kind, &request, &answer, &$0, port: port) }
      var frame = Wire([])
      frame.put(answer.bytes.count, bytes: 4)
      let bytes = frame.bytes + answer.bytes
      guard send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else { return }
    }
  }

  private static func answer(
    _ kind: Request, _ request: inout Wire, _ answer: inout Wire, _ state: inout State, port: UInt16
  ) {
    if kind != .versions { state.asked.append(kind) }
    switch kind {
    case .versions:
      answer.put(4, bytes: 4)
      for (kind, newest) in [(Request.metadata, 1), (.versions, 0), (.createTopics, 1), (.describeConfigs, 0)] {
        answer.put(Int(kind.rawValue), bytes: 2)
        answer.put(0, bytes: 2)
        answer.put(newest, bytes: 2)
      }
    case .metadata:
      let controller = state.asked.count { $0 == .metadata } > state.absentControllerFor ? 1 : state.absentController
      answer.put(2, bytes: 4)
      for (node, port) in [(1, Int(port)), (2, 1)] {
        answer.put(node, bytes: 4)
        answer.put("127.0.0.1")
        answer.put(port, bytes: 4)
        answer.put(-1, bytes: 2)
      }
      answer.put(controller, bytes: 4)
      answer.put(state.topics.count, bytes: 4)
      for topic in state.topics {
        answer.put(0, bytes: 2)
        answer.put(topic)
        answer.put(0, bytes: 1)
        answer.put(1, bytes: 4)
        // Its one partition is led by node 1, which has the only copy.
        answer.put(0, bytes: 6)
        for _ in 0..<5 { answer.put(1, bytes: 4) }
      }
    case .createTopics:
      let names = (0..<request.int32()).map { _ in
        let name = request.text()
        _ = (request.int32(), request.int16())
        // The assignment of replicas is not used.
        _ = request.int32()
        for _ in 0..<request.int32() { _ = (request.text(), request.text()) }
        return name
      }
      state.topics += names
      answer.put(names.count, bytes: 4)
      for name in names {
        answer.put(name)
        answer.put(0, bytes: 2)
        answer.put(-1, bytes: 2)
      }
    case .describeConfigs:
      let isKnown = state.asked.count { $0 == .describeConfigs } > state.unknownFor
      let names = (0..<request.int32()).map { _ in
        _ = request.int8()
        defer { _ = request.int32() }
        return request.text()
      }
      answer.put(0, bytes: 4)
      answer.put(names.count, bytes: 4)
      for name in names {
        answer.put(isKnown ? 0 : 3, bytes: 2)
        answer.put(-1, bytes: 2)
        answer.put(2, bytes: 1)
        answer.put(name)
        answer.put(0, bytes: 4)
      }
    }
  }

  private func receive(_ count: Int, _ client: Int32) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    return recv(client, &bytes, count, Int32(MSG_WAITALL)) == count ? bytes : nil
  }
}

/// Big-endian numbers and short texts, read from the front or appended at the end.
private struct Wire {
  private(set) var bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  private mutating func number(_ count: Int) -> Int {
    defer { position += count }
    return bytes[position..<position + count].reduce(0) { $0 << 8 | Int($1) }
  }

  static func length(_ head: [UInt8]) -> Int {
    var wire = Wire(head)
    return wire.int32()
  }

  mutating func int8() -> Int { number(1) }
  mutating func int16() -> Int { number(2) }
  mutating func int32() -> Int { Int(Int32(truncatingIfNeeded: number(4))) }

  mutating func text() -> String {
    let count = Int(Int16(truncatingIfNeeded: int16()))
    defer { position += max(0, count) }
    return String(decoding: bytes[position..<position + max(0, count)], as: UTF8.self)
  }

  mutating func put(_ number: Int, bytes count: Int) {
    bytes += (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
  }

  mutating func put(_ text: String) {
    put(text.utf8.count, bytes: 2)
    bytes += text.utf8
  }
}
