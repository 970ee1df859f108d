import ReelhaulSystem
import Testing

@testable import TransferEngine

@Suite struct S3XMLParserTests {
  private func text(_ document: String) throws -> String { try S3XMLParser.read(Array(document.utf8)).text }

  @Test(
    "the text of an element is what XML says",
    arguments: [
      ("<a>b</a>", "b"), ("<a/>", ""), ("<a></a>", ""), ("<a> </a>", " "),
      (" \n<?xml version='1.0'?> <a>b</a> \n", "b"),
      ("\u{FEFF}<a>b</a>", "b"), ("<a>&lt;&gt;&amp;&quot;&apos;</a>", "<>&\"'"), ("<a>&#65;&#x42;&#x1F3ac;</a>", "AB🎬"),
      ("<a><![CDATA[<b>&amp;]]]]><![CDATA[>]]></a>", "<b>&amp;]]>"), ("<a>b<!-- <c> & --->d</a>", "bd"),
      ("<!-- x --><a>b</a><!-- y -->", "b"), ("<a>b\r\nc\rd&#13;</a>", "b\nc\nd\r"),
      ("<p:a xmlns:p=\"x\" p:y = 'a>b' >b</p:a >", "b"), ("<a>b<c>d</c>e</a>", "be"), ("<a>]]></a>", "]]>"),
    ])
  func texts(document: String, text: String) throws {
    #expect(try self.text(document) == text)
  }

  @Test(
    "what is no such document is refused",
    arguments: [
      "", " ", "a", "<a>", "<a", "<", "</a>", "<a></b>", "<a></a", "<a/>b", "<a/><b/>", "a<a/>", "<a>&b;</a>",
      "<a>&</a>", "<a>&amp</a>", "<a>&#;</a>", "<a>&#x;</a>", "<a>&#xD800;</a>", "<a>&#x110000;</a>", "<a>&#0;</a>",
      "<a>&#99999999999;</a>", "<a>&#+1;</a>", "<a>&#a;</a>", "<!DOCTYPE a><a/>",
      "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "<a><!ELEMENT b></a>", "<a><?b c?></a>",
      "<?xml version='1.0' encoding='UTF-16'?><a/>", "<?xml version='1.0'><a/>", "<a b></a>", "<a b=c></a>",
      "<a b='c></a>", "<a b='<'></a>", "<a b='c'd='e'/>", "<a><!-- </a>", "<a><![CDATA[ </a>", "<a><![CDATA[\0]]></a>",
      "<1a/>", "<-a/>",
      "<a:/>", "< a/>", "<![CDATA[a]]>", "<a/><![CDATA[a]]>",
    ])
  func refusals(document: String) {
    #expect(throws: S3XMLError.self) { try text(document) }
  }

  @Test("bytes that are not UTF-8 are refused")
  func otherEncodings() {
    #expect(throws: S3XMLError.self) { try S3XMLParser.read(Array("<a>".utf8) + [0xFF] + Array("</a>".utf8)) }
    #expect(throws: S3XMLError.self) { try S3XMLParser.read([0xFE, 0xFF, 0, 0x3C, 0, 0x61, 0, 0x2F, 0, 0x3E]) }
  }

  @Test("depth, elements and size have limits")
  func limits() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
    }
    _ = try text(nested(S3XMLParser.depthLimit))
    #expect(throws: S3XMLError.self) { try text(nested(S3XMLParser.depthLimit + 1)) }
    #expect(throws: S3XMLError.self) { try text(nested(200_000)) }
    _ = try text("<a>\(String(repeating: "<b/>", count: S3XMLParser.elementLimit - 1))</a>")
    #expect(throws: S3XMLError.self) {
      try text("<a>\(String(repeating: "<b/>", count: S3XMLParser.elementLimit))</a>")
    }
    _ = try text("<a>\(String(repeating: " ", count: S3XMLParser.sizeLimit - 7))</a>")
    #expect(throws: S3XMLError.self) { try text("<a>\(String(repeating: " ", count: S3XMLParser.sizeLimit - 6))</a>") }
  }

  @Test("a document that is cut short is refused at every byte")
  func truncation() {
    for document in Self.documents {
      let bytes = Array(document.utf8)
      let end = bytes.lastIndex(of: UInt8(ascii: ">")) ?? 0
      for count in 0..<end {
        #expect(throws: S3XMLError.self) { try S3XMLParser.read(Array(bytes[..<count])) }
      }
    }
  }

  @Test("a changed document is read or refused, and never ends the process")
  func mutation() {
    var random = SplitMix64(seed: 99)
    let marks = Array("<>&;/!?-[]\"'= #x0aA\r\n\u{0}".utf8) + [0x80, 0xC3, 0xFF]
    var refused = 0
    for round in 0..<8000 {
      var bytes = Array(Self.documents[round % Self.documents.count].utf8)
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[place] = marks.randomElement(using: &random) ?? 0
        case 1: bytes.insert(marks.randomElement(using: &random) ?? 0, at: place)
        case 2: bytes.removeSubrange(place..<min(bytes.count, place + Int.random(in: 1...20, using: &random)))
        default:
          let from = Int.random(in: 0..<bytes.count, using: &random)
          bytes.insert(contentsOf: bytes[from..<min(bytes.count, from + 30)], at: place)
        }
        if bytes.isEmpty { bytes = [0x3C] }
      }
      do {
        _ = try S3PartList.read(bytes, status: 200)
      } catch {
        refused += 1
      }
      _ = try? S3UploadList.read(bytes, status: 200)
      _ = try? S3ObjectList.read(bytes, status: 200)
      _ = try? S3DeleteResult.read(bytes, status: 200)
    }
    #expect(refused > 4000)
  }

  private static let documents = [
    S3DocumentTests.initiated, S3DocumentTests.parts, S3DocumentTests.completed, S3DocumentTests.error,
    S3DocumentTests.uploads, S3DocumentTests.objects, S3DocumentTests.deleted, S3DocumentTests.copied,
  ]

  @Test("botocore finds the same keys in the same documents")
  func botocoreReadsTheSame() throws {
    let keys = ReferenceCases.keys(300, seed: 5).filter { !$0.contains("\t") }
    let cases = keys.map { key in
      var writer = S3XMLWriter()
      writer.element("DeleteResult") { writer in writer.element("Deleted") { $0.text("Key", key) } }
      return [
        "operation": "\"DeleteObjects\"",
        "body": ReferenceCases.quoted(String(decoding: writer.bytes, as: UTF8.self)),
      ]
    }
    let answers = try ReferenceCases.answers("s3-documents.py", cases)
    try #require(answers.count == keys.count)
    for (answer, key) in zip(answers, keys) {
      #expect(answer.contains("\"Deleted\": [{\"Key\": \(ReferenceCases.quoted(key))}]"))
    }
  }
}
