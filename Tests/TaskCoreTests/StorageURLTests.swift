import TaskCore
import Testing

@Suite struct StorageURLTests {
  @Test("a storage URL has a root and decoded names")
  func readsRootAndNames() throws {
    let url = try StorageURL("storage://default/films/My%20Film #1?.mp4")
    #expect(url.root == "default")
    #expect(url.names == ["films", "My Film #1?.mp4"])
    #expect(url.path == "films/My Film #1?.mp4")
    #expect(url.name == "My Film #1?.mp4")
    #expect(url.description == "storage://default/films/My Film %231%3F.mp4")
    #expect(try StorageURL(url.description) == url)
    #expect(try StorageURL("Storage://default/films/My%20Film #1?.mp4") == url)
  }

  @Test(
    "ordinary file names are accepted",
    arguments: ["CON", "..a", "a..", "🎬.mp4", "100%25.mp4", ".hidden", String(repeating: "x", count: 255)])
  func acceptsOrdinaryNames(name: String) throws {
    let url = try StorageURL("storage://a-1_b.c/\(name)")
    #expect(try StorageURL(url.description) == url)
  }

  @Test("names are normalised to composed Unicode")
  func composesNames() throws {
    let decomposed = try StorageURL("storage://a/e\u{301}.mp4")
    #expect(Array(decomposed.path.utf8) == Array("\u{e9}.mp4".utf8))
    #expect(try decomposed == StorageURL("storage://a/%C3%A9.mp4"))
  }

  @Test("names may stay as they are spelled, under the same rules")
  func keepsTheSpelling() throws {
    let decomposed = try StorageURL(spelled: "storage://a/e\u{301}.mp4")
    #expect(Array(decomposed.path.utf8) == Array("e\u{301}.mp4".utf8))
    #expect(throws: InvalidStorageURL.self) { try StorageURL(spelled: "storage://a/../e\u{301}") }
  }

  @Test(
    "an invalid storage URL is refused with its reason",
    arguments: [
      ("https://a/b", "begin"), ("storage://a", "has no path"), ("storage://a/", "empty"), ("storage:///b", "root"),
      ("storage://../b", "root"), ("storage://a b/c", "root"), ("storage://a//b", "empty"), ("storage://a/b/", "empty"),
      ("storage://a/../b", ".."), ("storage://a/b/%2e%2E/c", ".."), ("storage://a/.", "."),
      ("storage://a/b%2Fc", "control"),
      ("storage://a/b%00c", "control"), ("storage://a/b\nc", "control"), ("storage://a/b%C2%85c", "control"),
      ("storage://a/b%", "escape"),
      ("storage://a/%+1", "escape"), ("storage://a/%ff", "escape"), ("storage://a/.reelhaul/staging/x", "reserved"),
      ("storage://a/.ReelHaul/staging/x", "reserved"), ("storage://a/b/.reelhaul/volume", "reserved"),
      ("storage://a/.reelhaul./x", "reserved"), ("storage://a/.reelhaul%20/x", "reserved"),
      ("storage://a/.reel%E2%80%8Dhaul/x", "reserved"),
      ("storage://a/\(String(repeating: "x", count: 256))", "255"),
      ("storage://a/\(String(repeating: "é", count: 128))", "255"),
      ("storage://a/\(String(repeating: "xyz/", count: 600))x", "2048"),
    ])
  func refuses(text: String, reason: String) {
    let error = #expect(throws: InvalidStorageURL.self) { try StorageURL(text) }
    #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
  }

  @Test(
    "a file name is derived from the source",
    arguments: [
      ("https://a.example/v/film.mp4?token=x#y", "film.mp4"), ("https://a.example", "download"),
      ("https://a.example/", "download"), ("https://a.example/v/", "v"), ("https://a.example/%2e%2e", "download"),
      ("https://a.example/a%2Fb%00.mp4", "a_b_.mp4"), ("https://a.example/e%CC%81.mp4", "\u{e9}.mp4"),
      ("https://a.example/%ff.mp4", "%ff.mp4"), ("https://a.example/.reelhaul", "download"),
    ])
  func namesAFileAfterItsSource(source: String, name: String) {
    #expect(Array(StorageURL.fileName(ofSource: source).utf8) == Array(name.utf8))
  }

  @Test("a long name is shortened before its extension")
  func shortensLongNamesBeforeTheirExtension() {
    let name = StorageURL.fileName(ofSource: "https://a/" + String(repeating: "é", count: 200) + ".mp4")
    #expect(name.utf8.count <= 255)
    #expect(name.hasSuffix("é.mp4"))
    let ending = StorageURL.fileName(ofSource: "https://a/x." + String(repeating: "y", count: 300))
    #expect(ending.hasPrefix("x.") && ending.utf8.count <= 255)
  }
}
