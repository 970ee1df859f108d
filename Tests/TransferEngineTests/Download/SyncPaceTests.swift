import Testing

@testable import TransferEngine

@Suite struct SyncPaceTests {
  @Test("few runs sync as often as they should, and very many share the syncs of a second, up to a longest interval")
  func interval() {
    let pace = SyncPace()
    func enter(_ count: Int) { for _ in 0..<count { pace.enter() } }
    enter(96)
    #expect(pace.interval(atLeast: .seconds(2)) == .seconds(2))
    #expect(pace.patience(atLeast: .seconds(2)) == .zero)
    enter(96)
    #expect(pace.interval(atLeast: .seconds(2)) == .seconds(4))
    #expect(pace.patience(atLeast: .seconds(2)) == SyncPace.patience)
    enter(10_000)
    #expect(pace.interval(atLeast: .seconds(2)) == .seconds(24))
    #expect(pace.interval(atLeast: .seconds(3600)) == .seconds(3600))
    for _ in 0..<10_186 { pace.leave() }
    #expect(pace.interval(atLeast: .seconds(2)) == .seconds(2))
  }
}
