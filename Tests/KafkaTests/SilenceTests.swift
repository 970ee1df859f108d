import ReelhaulSystem
import Testing

@testable import ReelhaulKafka

@Suite struct SilenceTests {
  @Test("Kafka is silent once no answer came for 5 s, and no longer with the next one") func silence() {
    let begin = BootInstant.now
    var silence = Silence(since: begin)
    func failed(_ seconds: Int64) -> Bool { silence.failed(at: begin + .seconds(seconds)) }
    silence.end(at: begin + .seconds(1))
    #expect(!failed(2) && !failed(6) && !silence.isOn)
    #expect(failed(7) && silence.isOn)
    // What goes on is told once.
    #expect(!failed(8) && silence.isOn)
    silence.end(at: begin + .seconds(10))
    #expect(!silence.isOn)
    silence.end(at: begin + .seconds(11))
    #expect(!failed(16) && failed(17))
  }
}
