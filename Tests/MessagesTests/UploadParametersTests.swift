import ReelhaulCodec
import ReelhaulMessages
import TaskCore
import Testing

@Suite struct UploadParametersTests {
  private func parameters(
    _ json: String?, to destination: String = "s3://films/a", kind: TaskKind = .upload
  ) throws(InvalidTask) -> UploadParameters {
    try UploadParameters(
      TaskSpec(
        id: UniqueID(high: 1, low: 2), kind: kind, source: "storage://default/a", destination: destination,
        parameters: json.map { Array($0.utf8) }))
  }

  @Test("all parameters go both ways, and none are none")
  func goBothWays() throws {
    let text = """
      {"partSize":5242880,"contentType":"video/mp4; x=ü","metadata":{"a":"1","b":"u"},"storageClass":"GLACIER_IR",\
      "checksum":"crc32c"}
      """
    let read = try parameters(text)
    #expect(read.partSize == 5 << 20 && read.metadata == ["a": "1", "b": "u"] && read.checksum == .crc32c)
    #expect(read.json.map { String(decoding: $0, as: UTF8.self) } == text)
    let post = try parameters(#"{"method":"POST"}"#, to: "https://a/b?sig=1", kind: .copy)
    #expect(post.method == .post && post.json == Array(#"{"method":"POST"}"#.utf8))
    let copy = try parameters(#"{"toCredential":"b"}"#, kind: .copy)
    #expect(copy.toCredential == "b" && copy.json == Array(#"{"toCredential":"b"}"#.utf8))
    for empty in [nil, "{}", #"{"metadata":{},"method":null}"#] {
      #expect(try parameters(empty) == UploadParameters() && parameters(empty).json == nil)
    }
    #expect(try parameters(#"{"partSize":65536}"#, to: "tus+https://a/b").partSize == 65536)
    let whole = try parameters(#"{"creationWithUpload":true}"#, to: "tus+https://a/b")
    #expect(whole.creationWithUpload && whole.json == Array(#"{"creationWithUpload":true}"#.utf8))
    #expect(try parameters(nil, to: "storage://default/b", kind: .copy) == UploadParameters())
  }

  @Test(
    "a wrong parameter is refused with its path",
    arguments: [
      ("[]", "parameters: expected an object"), ("null", "parameters: expected an object"),
      (#"{"partsize":1}"#, #"parameters.partsize: there is no such field; did you mean "partSize"?"#),
      (
        #"{"acl":null}"#,
        "parameters.acl: there is no such field; there are method, partSize, contentType, metadata, storageClass, checksum, creationWithUpload, toCredential"
      ),
      (#"{"method":"PATCH"}"#, "parameters.method: expected one of PUT, POST"),
      (#"{"toCredential":"b"}"#, "parameters.toCredential: only a copy can have it"),
      (#"{"checksum":"md5"}"#, "parameters.checksum: expected one of crc32c, sha256, none"),
      (#"{"partSize":5242879}"#, "parameters.partSize: must be from 5242880 to 1073741824"),
      (#"{"partSize":5368709121}"#, "parameters.partSize: "),
      (#"{"partSize":"5MiB"}"#, "parameters.partSize: expected"),
      (#"{"contentType":""}"#, "parameters.contentType: is empty"),
      (#"{"contentType":"a\r\nb"}"#, "parameters.contentType: is empty, too long or has control characters"),
      (#"{"storageClass":"a b"}"#, "parameters.storageClass: must be 1 to 64"),
      (#"{"metadata":{"a":1}}"#, "parameters.metadata.a: expected a string"),
      (#"{"metadata":{"a b":""}}"#, "parameters.metadata: a name is empty or not a token of HTTP"),
      (#"{"metadata":{"a":"\n"}}"#, "parameters.metadata: the value of a is too long or has control characters"),
      (#"{"metadata":{"a":"ü"}}"#, "parameters.metadata: the value of a has other characters than ASCII"),
      (#"{"metadata":{"A":"1","a":"2"}}"#, "parameters.metadata: a appears twice"),
      (#"{"metadata":{"Reelhaul-Task":"1"}}"#, "parameters.metadata: names that begin with reelhaul-"),
      (
        #"{"metadata":{"a":"\#(String(repeating: "x", count: 1920))"}}"#, "parameters.metadata: longer than 1920 bytes"
      ),
      (#"{"checksum":"none","checksum":"none"}"#, "parameters: the name \"checksum\" appears twice"),
    ])
  func refuses(json: String, start: String) {
    let error = #expect(throws: InvalidTask.self) { try parameters(json) }
    #expect(error?.description.hasPrefix(start) == true, "\(error?.description ?? "")")
  }

  @Test("metadata of a tus upload, which is sent encoded, has any characters")
  func metadataOfTus() throws {
    let long = #"{"metadata":{"a":"\#(String(repeating: "x", count: 2048))"}}"#
    let error = #expect(throws: InvalidTask.self) { try parameters(long, to: "tus+https://a/files") }
    #expect(error?.description.hasPrefix("parameters.metadata: longer than 2048 bytes") == true)
    let read = try parameters(#"{"metadata":{"a":"ü"}}"#, to: "tus+https://a/files")
    #expect(read.metadata == ["a": "ü"])
  }

  private func stored(
    _ json: String, to destination: String = "s3://films/a", refusingUnknownNames: Bool = true
  ) throws(TaskFailure) -> UploadParameters {
    let spec = TaskSpec(
      id: UniqueID(high: 1, low: 2), kind: .upload, source: "storage://default/a", destination: destination,
      parameters: Array(json.utf8))
    return try UploadParameters(stored: spec, refusingUnknownNames: refusingUnknownNames)
  }

  @Test("a stored task keeps what an earlier version took, with parts of today's sizes")
  func storedByEarlierVersions() throws {
    let read = try stored(#"{"partSize":5368709120,"metadata":{"a":"ü"}}"#)
    #expect(read.partSize == 1 << 30 && read.metadata == ["a": "ü"])
    #expect(try stored(#"{"partSize":8388608}"#).partSize == 8 << 20)
    #expect(try stored(#"{"partSize":1}"#, to: "tus+https://a/files").partSize == 64 << 10)
    #expect(throws: InvalidTask.self) { try parameters(#"{"partSize":1073741825}"#) }
  }

  @Test("a name that a newer version has stored waits for its workers, but not in a clean-up; a wrong value fails")
  func storedByNewerVersions() throws {
    let json = #"{"acl":"private","checksum":"none"}"#
    let unknown = #expect(throws: TaskFailure.self) { try stored(json) }
    #expect(unknown?.code == .specUnreadable && unknown?.class == .wait)
    #expect(unknown?.message.contains("parameters.acl") == true)
    #expect(try stored(json, refusingUnknownNames: false).checksum == UploadParameters.Checksum.none)
    let wrong = #expect(throws: TaskFailure.self) { try stored(#"{"checksum":"md5"}"#) }
    #expect(wrong?.code == .parametersInvalid && wrong?.class == .fail)
  }

  @Test("metadata of exactly the limit is taken")
  func takesTheLimit() throws {
    for (place, limit) in [("s3://films/a", 1920), ("tus+https://a/files", 2048)] {
      _ = try parameters(#"{"metadata":{"a":"\#(String(repeating: "x", count: limit - 1))"}}"#, to: place)
    }
  }

  @Test(
    "a parameter that the destination would ignore is refused",
    arguments: [
      ("s3://films/a", ["method", "creationWithUpload"]),
      ("https://a/b", ["partSize", "metadata", "storageClass", "creationWithUpload"]),
      ("tus+http://a/b", ["method", "storageClass"]),
      (
        "storage://default/b",
        [
          "method", "partSize", "contentType", "metadata", "storageClass", "checksum", "creationWithUpload",
          "toCredential",
        ]
      ),
    ])
  func refusesWhatIsIgnored(destination: String, refused: [String]) {
    let values = [
      "method": #""PUT""#, "partSize": "8388608", "contentType": #""a/b""#, "metadata": #"{"a":"b"}"#,
      "storageClass": #""STANDARD""#, "checksum": #""none""#, "creationWithUpload": "true",
      "toCredential": #""b""#,
    ]
    for name in UploadParameters.names {
      let json = #"{"\#(name)":\#(values[name] ?? "")}"#
      var field: String?
      do throws(InvalidTask) { _ = try parameters(json, to: destination, kind: .copy) } catch { field = error.field }
      #expect(field == (refused.contains(name) ? "parameters.\(name)" : nil), "\(json)")
    }
  }

  @Test(
    "a checksum that the destination cannot have is refused",
    arguments: [
      ("s3://films/a", ["crc32c", "none"]), ("tus+https://a/b", ["sha256", "none"]), ("https://a/b", ["none"]),
    ])
  func checksums(destination: String, possible: [String]) {
    for name in UploadParameters.Checksum.allCases.map(\.rawValue) {
      let isTaken = (try? parameters(#"{"checksum":"\#(name)"}"#, to: destination)) != nil
      #expect(isTaken == possible.contains(name), "\(name)")
    }
  }

  @Test(
    "a submit with wrong parameters is rejected with their path",
    arguments: [
      (
        #""kind":"upload","source":"storage://default/a","destination":"s3://films/a","parameters":{"partSize":1}"#,
        "task.parameters.partSize: must be from 5242880 to 1073741824"
      ),
      (
        #""kind":"copy","source":"https://a/b","destination":"storage://default/a","parameters":{"method":"PUT"}"#,
        "task.parameters.method: only a destination http(s):// can have it, not storage://"
      ),
      (
        #""kind":"upload","source":"storage://default/a","destination":"s3://films/a","headers":{"content-TYPE":"a/b"}"#,
        "task.headers: Content-Type is the parameter contentType of an upload"
      ),
      (
        #""kind":"upload","source":"storage://default/a","destination":"s3://films/a","headers":{"X-Mine":"1"}"#,
        "task.headers: X-Mine is not sent to s3://, which takes Cache-Control, Content-Disposition, Content-Language, "
          + "Expires and x-amz- fields of an object's access, encryption, tags and locks"
      ),
      (
        #""kind":"upload","source":"storage://a/a","destination":"s3://films/a","headers":{"x-amz-copy-source":"b"}"#,
        "task.headers: x-amz-copy-source is not sent to s3://, which takes Cache-Control, Content-Disposition, "
          + "Content-Language, Expires and x-amz- fields of an object's access, encryption, tags and locks"
      ),
      (
        #""kind":"delete","source":"s3://films/a/""#,
        #"task.source: its key ends with "/", so all objects below it are deleted: this needs recursive"#
      ),
      (
        #""kind":"delete","source":"s3://films/a","parameters":{"recursive":true}"#,
        #"task.source: a recursive delete of s3:// needs a key that ends with "/""#
      ),
      (
        #""kind":"delete","source":"https://a/b","parameters":{"recursive":true}"#,
        "task.parameters.recursive: only storage:// and s3:// have anything below a URL"
      ),
      (
        #""kind":"delete","source":"storage://default/a","parameters":{"recusive":true}"#,
        #"task.parameters.recusive: there is no such field; did you mean "recursive"?"#
      ),
    ])
  func refusesAtTheSubmission(fields: String, reason: String) {
    let text = Array(#"{"command":"submit","task":{\#(fields)}}"#.utf8)
    #expect(throws: Rejection(.invalidField, reason)) {
      try CommandDecoder.decode(text) { UniqueID(high: 1, low: 2) }
    }
  }

  @Test(
    "right deletes, uploads and copies are taken",
    arguments: [
      #""kind":"delete","source":"s3://films/a/","parameters":{"recursive":true}"#,
      #""kind":"delete","source":"s3://films/a?versionId=1""#, #""kind":"delete","source":"tus+https://a/files/1""#,
      #""kind":"delete","source":"storage://default/a","parameters":{"recursive":true}"#,
      #""kind":"upload","source":"storage://default/a","destination":"tus+https://a/files","parameters":{"metadata":{"a":"b"}}"#,
      #""kind":"copy","source":"s3://films/a","destination":"https://a/b","parameters":{"method":"POST"}"#,
      #""kind":"upload","source":"storage://a/a","destination":"s3://films/a","headers":{"X-Amz-Grant-Read":"id=1"}"#,
      #""kind":"upload","source":"storage://a/a","destination":"s3://film/a","headers":{"x-amz-object-lock-mode":"b"}"#,
    ])
  func takesAtTheSubmission(fields: String) throws {
    let command = try CommandDecoder.decode(line: Array("{\(fields)}".utf8)) { UniqueID(high: 1, low: 2) }
    if case .control = command { Issue.record("not a submit") }
  }
}

@Suite struct UploadOutputTests {
  @Test("the output of an upload goes both ways, and hides the values of a query")
  func goesBothWays() throws {
    let output = UploadOutput(
      location: "s3://films/a?versionId=1", etag: "\"1f-2\"", versionID: "1", bytes: 9, verified: .sha256,
      remark: "no more")
    #expect(try UploadOutput(json: output.json) == output)
    let bare = UploadOutput(location: "https://a/b?sig=1", bytes: 0, verified: .none)
    #expect(
      String(decoding: bare.json, as: UTF8.self)
        == #"{"location":"https://a/b?sig=***","etag":null,"versionId":null,"bytes":0,"verified":"none"}"#)
    #expect(throws: DecodingFailure.self) { try UploadOutput(json: Array(#"{"location":"a","bytes":1}"#.utf8)) }
  }
}
