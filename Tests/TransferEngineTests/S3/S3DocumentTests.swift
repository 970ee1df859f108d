import TaskCore
import Testing

@testable import TransferEngine

@Suite struct S3DocumentTests {
  /// Documents in the forms that AWS's reference shows.
  static let initiated = """
    <?xml version="1.0" encoding="UTF-8"?>
    <InitiateMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
      <Bucket>example-bucket</Bucket><Key>example-object</Key>
      <UploadId>VXBsb2FkIElEIGZvciA2aWWpbmcncyBteS1tb3ZpZS5tMnRzIHVwbG9hZA</UploadId>
    </InitiateMultipartUploadResult>
    """
  static let parts = """
    <?xml version="1.0" encoding="UTF-8"?>
    <ListPartsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
      <Bucket>example-bucket</Bucket><Key>example-object</Key><UploadId>XXBsb2FkIElEIGZvciBlbHZpbmcncyVcdS1tb3ZpZS5tMnRzEEEwbG9hZA</UploadId>
      <Initiator><ID>arn:aws:iam::111122223333:user/some-user-11116a31-17b5-4fb7-9df5-b288870f11xx</ID><DisplayName>umat-user</DisplayName></Initiator>
      <Owner><ID>75aa57f09aa0c8caeab4f8c24e99d10f8e7faeebf76c078efc7c6caea54ba06a</ID><DisplayName>someName</DisplayName></Owner>
      <StorageClass>STANDARD</StorageClass><PartNumberMarker>1</PartNumberMarker><NextPartNumberMarker>3</NextPartNumberMarker>
      <MaxParts>2</MaxParts><IsTruncated>true</IsTruncated>
      <Part><PartNumber>2</PartNumber><LastModified>2010-11-10T20:48:34.000Z</LastModified><ETag>"7778aef83f66abc1fa1e8477f296d394"</ETag><Size>10485760</Size></Part>
      <Part><PartNumber>3</PartNumber><LastModified>2010-11-10T20:48:33.000Z</LastModified><ETag>&quot;aaaa18db4cc2f85cedef654fccc4a4x8&quot;</ETag><Size>10485760</Size><ChecksumCRC32C>yKEG5Q==</ChecksumCRC32C></Part>
    </ListPartsResult>
    """
  static let completed = """
    <?xml version="1.0" encoding="UTF-8"?>

       \u{20}
    <CompleteMultipartUploadResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
     <Location>http://Example-Bucket.s3.Region.amazonaws.com/Example-Object</Location>
     <Bucket>Example-Bucket</Bucket><Key>Example-Object</Key><ETag>"3858f62230ac3c915f300c664312c11f-9"</ETag>
     <ChecksumSHA256>MV9b</ChecksumSHA256><ChecksumType>COMPOSITE</ChecksumType>
    </CompleteMultipartUploadResult>
    """
  static let error = """
    <?xml version="1.0" encoding="UTF-8"?>
    <Error><Code>InternalError</Code><Message>We encountered an internal error. Please try again.</Message>
    <RequestId>656c76696e6727732072657175657374</RequestId><HostId>Uuag1LuByRx9e6j5Onimru9pO4ZVKnJ2Qz7/C1NPcfTWAtRPfTaOFg==</HostId></Error>
    """
  static let uploads = """
    <?xml version="1.0" encoding="UTF-8"?>
    <ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
      <Bucket>bucket</Bucket><KeyMarker></KeyMarker><UploadIdMarker></UploadIdMarker>
      <NextKeyMarker>my-movie.m2ts</NextKeyMarker><NextUploadIdMarker>YW55IGlkZWEgd2h5IGVsdmluZydzIHVwbG9hZCBmYWlsZWQ</NextUploadIdMarker>
      <MaxUploads>3</MaxUploads><IsTruncated>true</IsTruncated>
      <Upload><Key>my-divisor</Key><UploadId>XMgbGlrZSBlbHZpbmcncyBub3QgaGF2aW5nIG11Y2ggbHVjaw</UploadId>
        <Initiator><ID>arn:aws:iam::111122223333:user/user1</ID><DisplayName>user1</DisplayName></Initiator>
        <Owner><ID>75aa</ID><DisplayName>OwnerDisplayName</DisplayName></Owner>
        <StorageClass>STANDARD</StorageClass><Initiated>2010-11-10T20:48:33.000Z</Initiated></Upload>
      <Upload><Key>my-movie.m2ts</Key><UploadId>VXBsb2FkIElEIGZvciBlbHZpbmcncyBteS1tb3ZpZS5tMnRzIHVwbG9hZA</UploadId>
        <Initiated>2010-11-10T20:48:33.000Z</Initiated></Upload>
    </ListMultipartUploadsResult>
    """
  static let objects = """
    <?xml version="1.0" encoding="UTF-8"?>
    <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
      <Name>amzn-s3-demo-bucket</Name><Prefix/><NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
      <KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
      <Contents><Key>my+image%2B.jpg</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified><ETag>"fba9dede5f27731c9771645a39863328"</ETag><Size>434234</Size><StorageClass>STANDARD</StorageClass></Contents>
      <Contents><Key>%E6%97%A5%0D%01</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified><Size>0</Size></Contents>
      <CommonPrefixes><Prefix>photos%2F2006/</Prefix></CommonPrefixes>
    </ListBucketResult>
    """
  static let deleted = """
    <?xml version="1.0" encoding="UTF-8"?>
    <DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
      <Deleted><Key>sample1.txt</Key></Deleted>
      <Deleted><Key>SampleDocument.txt</Key><VersionId>OYcLXagmS.WaD..oyH4KRguB95_YhLs7</VersionId><DeleteMarker>true</DeleteMarker></Deleted>
      <Error><Key>sample2.txt</Key><Code>AccessDenied</Code><Message>Access Denied</Message></Error>
    </DeleteResult>
    """
  static let copied = """
    <?xml version="1.0" encoding="UTF-8"?>
    <CopyPartResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><LastModified>2011-04-11T20:34:56.000Z</LastModified><ETag>"9b2cf535f27731c974343645a3985328"</ETag></CopyPartResult>
    """

  private func read<Document: S3Document>(_ text: String, as type: Document.Type = Document.self) throws -> Document {
    try Document.read(Array(text.utf8), status: 200).get()
  }

  @Test("the documents of AWS's reference are read")
  func reference() throws {
    let initiated: S3InitiatedUpload = try read(Self.initiated)
    #expect(initiated.uploadID == "VXBsb2FkIElEIGZvciA2aWWpbmcncyBteS1tb3ZpZS5tMnRzIHVwbG9hZA")
    let parts: S3PartList = try read(Self.parts)
    #expect(parts.parts.map(\.number) == [2, 3])
    #expect(parts.parts.map(\.etag) == ["7778aef83f66abc1fa1e8477f296d394", "aaaa18db4cc2f85cedef654fccc4a4x8"])
    #expect(parts.parts.map(\.size) == [10_485_760, 10_485_760])
    #expect(parts.parts.map(\.crc32c) == [nil, "yKEG5Q=="])
    #expect(parts.nextMarker == 3)
    let completed: S3CompletedUpload = try read(Self.completed)
    #expect(completed.etag == "3858f62230ac3c915f300c664312c11f-9")
    #expect(completed.checksumType == "COMPOSITE")
    let uploads: S3UploadList = try read(Self.uploads)
    #expect(uploads.uploads.map(\.key) == ["my-divisor", "my-movie.m2ts"])
    #expect(uploads.uploads[0].initiated == (try Timestamp(rfc3339: "2010-11-10T20:48:33Z")))
    #expect(uploads.next?.key == "my-movie.m2ts")
    #expect(uploads.next?.uploadID == "YW55IGlkZWEgd2h5IGVsdmluZydzIHVwbG9hZCBmYWlsZWQ")
    let objects: S3ObjectList = try read(Self.objects)
    #expect(objects.objects.map(\.key) == ["my image+.jpg", "日\r\u{1}"])
    #expect(objects.objects.map(\.size) == [434_234, 0])
    #expect(objects.nextToken == "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=")
    let deleted: S3DeleteResult = try read(Self.deleted)
    #expect(deleted.refused.map(\.key) == ["sample2.txt"])
    #expect(deleted.refused.map(\.error.code) == ["AccessDenied"])
    let copied: S3CopiedPart = try read(Self.copied)
    #expect(copied.etag == "9b2cf535f27731c974343645a3985328")
    let whole = Self.copied.replacing("CopyPartResult", with: "CopyObjectResult")
    let object: S3CopiedObject = try read(whole)
    #expect(object.etag == "9b2cf535f27731c974343645a3985328")
  }

  @Test("an error inside of a success is an error")
  func errorsInside() throws {
    let answer = try S3CompletedUpload.read(Array(Self.error.utf8), status: 200)
    guard case .failure(let error) = answer else {
      Issue.record("\(answer)")
      return
    }
    #expect(error.code == "InternalError")
  }

  @Test(
    "a document that lacks what is needed, or is another one, is refused",
    arguments: [
      (parts, "<PartNumber>2</PartNumber>", ""), (parts, "<Size>10485760</Size>", "<Size>-1</Size>"),
      (parts, "<Size>10485760</Size>", "<Size>99999999999999999999</Size>"),
      (parts, "<IsTruncated>true", "<IsTruncated>perhaps"),
      (parts, "ListPartsResult", "OtherResult"), (parts, "PartNumber>2<", "PartNumber>+2<"),
    ])
  func incompleteParts(document: String, part: String, replacement: String) {
    let text = document.split(separator: part, omittingEmptySubsequences: false).joined(separator: replacement)
    #expect(text != document)
    #expect(throws: S3XMLError.self) { try S3PartList.read(Array(text.utf8), status: 200) }
  }

  @Test("a list of parts goes on behind its last part, wherever it says, and ends where it has none")
  func pagesOfParts() throws {
    let marker = "<NextPartNumberMarker>3</NextPartNumberMarker>"
    for (replacement, next) in [("", 3), ("0", 3), ("1", 3), ("x", 3), ("\n 3 ", 3), ("5", 5)] {
      let other = replacement.isEmpty ? "" : marker.replacing("3", with: replacement)
      let list: S3PartList = try read(Self.parts.replacing(marker, with: other))
      #expect(list.nextMarker == next && list.parts.count == 2, "\(replacement)")
    }
    let words = [(">2</PartNumber>", ">\n  2\t</PartNumber>"), ("true", "\nTrue ")]
    let spaced = words.reduce(Self.parts) { $0.replacing($1.0, with: $1.1) }
    #expect(try read(spaced, as: S3PartList.self) == read(Self.parts))
    let empty: S3PartList = try read("<ListPartsResult><IsTruncated>true</IsTruncated></ListPartsResult>")
    #expect(empty.nextMarker == nil)
  }

  @Test("a list that goes on must say where")
  func pagesNeedMarkers() {
    for (document, marker) in [(Self.uploads, "NextKeyMarker"), (Self.objects, "NextContinuationToken")] {
      let text = document.split(separator: marker, omittingEmptySubsequences: false).joined(separator: "Other")
      #expect(throws: S3XMLError.self) { try S3UploadList.read(Array(text.utf8), status: 200) }
      #expect(throws: S3XMLError.self) { try S3ObjectList.read(Array(text.utf8), status: 200) }
    }
  }

  @Test("bodies are written as S3 wants them")
  func written() {
    let completion = S3Completion([.init(number: 2, etag: "b"), .init(number: 1, etag: "\"a\"", crc32c: "y=")])
    #expect(
      String(decoding: completion.xml, as: UTF8.self) == """
        <?xml version="1.0" encoding="UTF-8"?>
        <CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">\
        <Part><ETag>&quot;a&quot;</ETag><ChecksumCRC32C>y=</ChecksumCRC32C><PartNumber>1</PartNumber></Part>\
        <Part><ETag>&quot;b&quot;</ETag><PartNumber>2</PartNumber></Part>\
        </CompleteMultipartUpload>
        """)
    let deletion = S3Deletion(["a<&>\r\n\u{1}日", " "])
    #expect(
      String(decoding: deletion.xml, as: UTF8.self) == """
        <?xml version="1.0" encoding="UTF-8"?>
        <Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">\
        <Object><Key>a&lt;&amp;&gt;&#13;&#10;&#1;日</Key></Object>\
        <Object><Key> </Key></Object><Quiet>true</Quiet></Delete>
        """)
  }

  @Test("a NUL, which PostgreSQL cannot keep, is refused however it is written", arguments: ["a\u{0}b", "a&#0;b"])
  func nul(text: String) {
    #expect(throws: S3XMLError.self) { try S3XMLParser.read(Array("<A><UploadId>\(text)</UploadId></A>".utf8)) }
  }

  @Test("every key that is written is read again")
  func keysComeBack() throws {
    let keys = ReferenceCases.keys(1000, seed: 3) + ["\r\n", "\r", "\t ", "\u{2028}\u{85}\u{7F}"]
    let root = try S3XMLParser.read(S3Deletion(keys).xml)
    #expect(try root.children("Object").map { try $0.string("Key") } == keys)
    #expect(keys.allSatisfy { S3Encoding.decode(S3Encoding.value($0)) == $0 })
  }

  @Test("entity tags that are an MD5 are told from others")
  func entityTags() {
    let md5 = "9b2cf535f27731c974343645a3985328"
    #expect([md5, "\"\(md5)\"", md5.uppercased()].allSatisfy { S3ETag.md5($0) == md5 })
    #expect(
      ["", "x", "\(md5)0", "\(md5)-12", "\(md5)-", "W/\"\(md5)\"", "\(md5.dropLast())g"].allSatisfy {
        S3ETag.md5($0) == nil
      })
    #expect(S3ETag.bare("\"a\"") == "a" && S3ETag.bare("a") == "a" && S3ETag.bare("\"") == "\"")
  }
}
