import ReelhaulPostgres
import Testing

@Suite struct SQLStateTests {
  private struct Meaning: Hashable {
    var isRetryable = false
    var isLostRace = false
    var isForeignSchema = false
    var isServersFault = false
    var isPermanent = false

    init(_ error: PostgresError) {
      isRetryable = error.isRetryable
      isLostRace = error.isLostRace
      isForeignSchema = error.isForeignSchema
      isServersFault = error.isServersFault
      isPermanent = error.isPermanent
    }

    init(_ change: (inout Meaning) -> Void) { change(&self) }
  }

  private static func means(_ states: [String], _ meaning: Meaning) {
    for state in states { #expect(Meaning(PostgresError(.server, "no", sqlState: state)) == meaning, "\(state)") }
  }

  @Test("a lost race and a deadlock pass, and may be tried again at once")
  func lostRaces() {
    Self.means(["40001", "40P01"], Meaning { ($0.isRetryable, $0.isLostRace) = (true, true) })
  }

  @Test(
    "a function or view that was replaced meanwhile passes, and other internal errors do not",
    arguments: [
      ("cache lookup failed for function 4711", true), ("could not open relation with OID 4711", true),
      ("unexpected chunk number", false),
    ])
  func replaced(message: String, passes: Bool) {
    let error = PostgresError(.server, message, sqlState: "XX000")
    #expect(error.isLostRace == passes && error.isRetryable == passes)
  }

  @Test("a place in a lane that was given away before is a lost race, and other values that are there twice are not")
  func placesGivenAway() {
    for (constraint, passes) in [("ready_pkey", true), ("task_pkey", false), (nil, false)] as [(String?, Bool)] {
      var error = PostgresError(.server, "duplicate key value", sqlState: "23505")
      error.constraint = constraint
      #expect(error.isLostRace == passes && error.isRetryable == passes)
    }
  }

  @Test("a server that goes down, is full or no longer knows a statement passes")
  func transient() {
    Self.means(
      ["55P03", "57P01", "57P02", "57P03", "25006", "26000", "42P05", "08006", "53300"],
      Meaning { $0.isRetryable = true })
  }

  @Test("a server that answers says what it lacks")
  func lacks() {
    let lacks: [(String?, PostgresError.Lack?)] = [
      ("25006", .writes), ("53300", .connections), ("53100", .resources), ("XX000", .resources), ("57P03", nil),
      (nil, nil),
    ]
    for (state, lack) in lacks {
      #expect(PostgresError(.connection, "no", sqlState: state).lack == lack, "\(state ?? "")")
    }
  }

  @Test("an unknown schema, table, function or column is another program's schema")
  func foreignSchemas() {
    Self.means(["3F000", "42P01", "42883", "42703"], Meaning { $0.isForeignSchema = true })
  }

  @Test("a timeout, a broken disk or a lack of transaction ids is the server's fault, and no value's")
  func serversFaults() {
    Self.means(
      ["57014", "XX000", "XX001", "XX002", "58030", "58P01", "54000", "55000", "42P17"],
      Meaning { $0.isServersFault = true })
    Self.means(["42501"], Meaning { ($0.isServersFault, $0.isPermanent) = (true, true) })
  }

  @Test("a wrong password or database lets nobody in; a wrong value is the value's fault")
  func others() {
    Self.means(["28P01", "28000", "3D000"], Meaning { $0.isPermanent = true })
    Self.means(["22003", "22P05", "23514", "P0001"], Meaning { _ in })
  }
}
