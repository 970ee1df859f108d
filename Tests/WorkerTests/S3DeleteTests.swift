import Glibc
import MemoryTaskStore
import ReelhaulSystem
import TaskCore
import TaskStore
import TestKit
import Testing
import TransferEngine
import WorkerCore

/// Deletions of objects of S3.
@Suite struct S3DeleteTests {
  @Test("an object is deleted, and absent afterwards") func one() async throws {
    try await RemoteDeleteBench.run { bench in
      for key in ["films/a.mp4", "films/../b c+d.mp4"] {
        bench.server.put(key, bytes: Array("film".utf8))
        #expect(
          await bench.deleteS3(key.split(separator: " ").joined(separator: "%20"))
            == .output(4, #"{"files":1,"bytes":4}"#))
        #expect(bench.server.objects.isEmpty)
        #expect(await bench.deleteS3(key.split(separator: " ").joined(separator: "%20")) == .absent)
      }
    }
  }

  @Test("a missing bucket is no absent object") func noBucket() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.options.buckets = ["films"]
      #expect(await bench.deleteS3("films/a.mp4") == .absent)
      let failure = (await bench.deleteS3("filsm/a.mp4")).failure
      #expect(failure?.code.rawValue == "s3_no_such_bucket" && failure?.class == .fail)
    }
  }

  @Test("a 404 that does not come from the store proves no deletion") func gateway() async throws {
    try await RemoteDeleteBench.run { bench in
      let page = StoreFault.status(404, body: "<html>no such page</html>")
      for bytes in [Array("film".utf8), []] {
        bench.server.put("films/a.mp4", bytes: bytes)
        for operations: Set<StoreOperation> in [
          [.headObject], [.deleteObject], [.headObject, .getObject], [.deleteObject, .getObject],
        ] {
          bench.server.script { operations.contains($0.operation) ? [page] : [] }
          let failure = (await bench.deleteS3("films/a.mp4")).failure
          #expect(failure?.code == .http(404) && failure?.class == .retry, "\(operations)")
          #expect(bench.server.objects.count == 1)
        }
      }
      // It is gone, and the store itself says so.
      bench.server.always(.deleteObject, .statusAfterApplying(404), .header("Content-Length", "0"))
      #expect(await bench.deleteS3("films/a.mp4") == .output(0, #"{"files":1,"bytes":0}"#))
      #expect(bench.server.objects.isEmpty)
      // Of a folder, it is tried again.
      for number in 0..<3 { bench.server.put("films/a/\(number)", bytes: [1]) }
      bench.server.script { request in
        switch request.operation {
        case .deleteObjects: [.status(501)]
        case .deleteObject: request.ordinal == 7 ? [page] : []
        default: []
        }
      }
      #expect(await bench.deleteS3("films/a/", recursively: true) == .output(3, #"{"files":3,"bytes":3}"#))
    }
  }

  @Test("a version is deleted, and the other versions stay") func version() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.options.hasVersions = true
      let first = bench.server.put("films/a.mp4", bytes: Array("film".utf8))
      bench.server.put("films/a.mp4", bytes: Array("second".utf8))
      let id = try #require(first.versionID)
      #expect(await bench.deleteS3("films/a.mp4?versionId=\(id)") == .output(4, #"{"files":1,"bytes":4}"#))
      #expect(bench.server.versions("films/a.mp4").count == 1 && bench.server.objects["films/a.mp4"]?.size == 6)
      // A second run adds no delete marker.
      for expected in [RunOutcome.output(6, #"{"files":1,"bytes":6}"#), .absent] {
        #expect(await bench.deleteS3("films/a.mp4") == expected)
        #expect(bench.server.versions("films/a.mp4").count == 2)
      }
    }
  }

  @Test("a store that knows no versions keeps its object if a version is to be deleted") func noVersions() async throws
  {
    try await RemoteDeleteBench.run { bench in
      bench.server.options.ignoresVersions = true
      bench.server.put("films/a.mp4", bytes: Array("film".utf8))
      let failure = (await bench.deleteS3("films/a.mp4?versionId=v1")).failure
      #expect(failure?.code == .sourceInvalid && failure?.class == .fail)
      #expect(bench.server.exchanges(.deleteObject).isEmpty && bench.server.objects["films/a.mp4"] != nil)
      #expect(await bench.deleteS3("films/a.mp4?versionId=null") == .output(4, #"{"files":1,"bytes":4}"#))
      bench.server.always(.deleteObject, .status(501, body: "<Error><Code>NotImplemented</Code></Error>"))
      #expect(await bench.deleteS3("films/a.mp4?versionId=v1") == .absent)
    }
  }

  @Test("a version that nobody may look at stays where the store may know no versions") func unseenVersion()
    async throws
  {
    try await RemoteDeleteBench.run { bench in
      bench.server.options.ignoresVersions = true
      bench.server.put("films/a.mp4", bytes: Array("film".utf8))
      bench.server.always(.headObject, .status(403))
      let failure = (await bench.deleteS3("films/a.mp4?versionId=v1")).failure
      #expect(failure?.code == .http(403) && failure?.class == .fail)
      #expect(bench.server.exchanges(.deleteObject).isEmpty && bench.server.objects["films/a.mp4"] != nil)
      #expect(await bench.deleteS3("films/a.mp4?versionId=null") == .output(0, #"{"files":1}"#))
      bench.server.put("films/a.mp4", bytes: Array("film".utf8))
      #expect(await bench.deleteS3("films/a.mp4") == .output(0, #"{"files":1}"#))
    }
  }

  @Test("a delete marker is deleted, also where the store shows none", arguments: [405, 404])
  func marker(status: Int) async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.options.hasVersions = true
      bench.server.put("films/a.mp4", bytes: Array("film".utf8))
      #expect(await bench.deleteS3("films/a.mp4") == .output(4, #"{"files":1,"bytes":4}"#))
      let marker = try #require(bench.server.deleteMarkers("films/a.mp4").first)
      bench.server.always(.headObject, .status(status))
      #expect(await bench.deleteS3("films/a.mp4?versionId=\(marker)") == .output(0, #"{"files":1}"#))
      #expect(bench.server.objects["films/a.mp4"]?.size == 4 && bench.server.versions("films/a.mp4").count == 1)
      bench.server.script { _ in [] }
      #expect(await bench.deleteS3("films/a.mp4?versionId=\(marker)") == .absent)
    }
  }

  @Test("an expected size is compared, and the object is deleted only if it is still the same") func size()
    async throws
  {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("films/a.mp4", bytes: Array("film".utf8))
      #expect((await bench.deleteS3("films/a.mp4") { $0.expect.bytes = 5 }).failure?.code == .sizeMismatch)
      #expect(bench.server.exchanges(.deleteObject).isEmpty)
      // Another object comes between the look and the DELETE.
      bench.server.script { [server = bench.server] request in
        if request.operation == .deleteObject { server.put("films/a.mp4", bytes: Array("new!".utf8)) }
        return []
      }
      #expect((await bench.deleteS3("films/a.mp4") { $0.expect.bytes = 4 }).failure?.class == .retry)
      #expect(bench.server.objects["films/a.mp4"] != nil)
      bench.server.always(.deleteObject, .preconditionFailed412)
      #expect((await bench.deleteS3("films/a.mp4") { $0.expect.bytes = 4 }).failure?.class == .retry)
      // A store that does not know the condition.
      bench.server.script { $0.operation == .deleteObject && $0["if-match"] != nil ? [.status(501)] : [] }
      #expect(await bench.deleteS3("films/a.mp4") { $0.expect.bytes = 4 } == .output(4, #"{"files":1,"bytes":4}"#))
    }
  }

  @Test(
    "a lost answer is a success at the next look", arguments: [false, true], [StoreFault.closeAfterApplying, .cutHead])
  func lost(isFolder: Bool, fault: StoreFault) async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("films/a/b.mp4", bytes: Array("film".utf8))
      bench.server.script { $0.method != "GET" && $0.method != "HEAD" && $0.ordinal == 1 ? [fault] : [] }
      let first = await bench.deleteS3(isFolder ? "films/a/" : "films/a/b.mp4", recursively: isFolder)
      // libcurl itself may have sent the request again.
      #expect(first == .output(4, #"{"files":1,"bytes":4}"#) || first.failure?.class == .retry)
      #expect(await bench.deleteS3(isFolder ? "films/a/" : "films/a/b.mp4", recursively: isFolder) == .absent)
    }
  }

  @Test("a folder is deleted page by page, and nothing beside it", arguments: [true, false])
  func folder(isBulk: Bool) async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.options.pageSize = 7
      let beside = ["films/talks", "films/talks2/a.mp4", "films/talk/a.mp4", "other/talks/a.mp4"]
      for key in beside { bench.server.put(key, bytes: [1]) }
      for number in 0..<40 { bench.server.put("films/talks/\(number) <&>é.mp4", bytes: Array("film".utf8)) }
      bench.server.put("films/talks/", bytes: [])
      bench.server.put("films/talks/\u{e9}.mp4", bytes: [])
      if !isBulk { bench.server.always(.deleteObjects, .status(501)) }
      let outcome = await bench.deleteS3("films/talks/", recursively: true)
      #expect(outcome == .output(160, #"{"files":42,"bytes":160}"#))
      #expect(Set(bench.server.objects.keys) == Set(beside))
      #expect(bench.server.exchanges(.deleteObjects).count == (isBulk ? 6 : 1))
      #expect(await bench.deleteS3("films/talks/", recursively: true) == .absent)
    }
  }

  @Test("a listing with a key outside the folder deletes nothing") func outside() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("films/a/b.mp4", bytes: [1])
      bench.server.put("films/c.mp4", bytes: [1])
      let list = """
        <ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a/b.mp4</Key><Size>1</Size></Contents>\
        <Contents><Key>c.mp4</Key><Size>1</Size></Contents></ListBucketResult>
        """
      bench.server.always(.listObjects, .status(200, body: list))
      #expect((await bench.deleteS3("films/a/", recursively: true)).failure?.code == .badResponse)
      #expect(bench.server.objects.count == 2)
    }
  }

  @Test("a listing that has only empty pages ends") func emptyPages() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.script { request in
        guard request.operation == .listObjects else { return [] }
        let next = request.ordinal <= 2000 ? "true</IsTruncated><NextContinuationToken>\(request.ordinal)" : "false"
        let end = request.ordinal <= 2000 ? "</NextContinuationToken>" : "</IsTruncated>"
        return [.status(200, body: "<ListBucketResult><IsTruncated>\(next)\(end)</ListBucketResult>")]
      }
      let failure = (await bench.deleteS3("films/a/", recursively: true)).failure
      #expect(failure?.code == .badResponse && failure?.class == .retry)
    }
  }

  @Test("a listing that repeats its page ends") func samePage() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.script { request in
        guard request.operation == .listObjects else { return [] }
        let next = "<NextContinuationToken>next</NextContinuationToken>"
        let end = "<IsTruncated>\(request.ordinal < 10)</IsTruncated>\(request.ordinal < 10 ? next : "")"
        let object = "<Contents><Key>a/b.mp4</Key><Size>1</Size></Contents>"
        return [.status(200, body: "<ListBucketResult>\(end)\(object)</ListBucketResult>")]
      }
      let failure = (await bench.deleteS3("films/a/", recursively: true)).failure
      #expect(failure?.code == .badResponse && failure?.class == .retry)
      #expect(bench.server.exchanges(.listObjects).count == 2)
    }
  }

  @Test("what the store refuses to delete is named, and all the rest is deleted") func refused() async throws {
    try await RemoteDeleteBench.run { bench in
      for number in 0..<5 { bench.server.put("films/a/\(number)", bytes: [1]) }
      bench.server.always(.deleteObjects, .status(501))
      bench.server.script { request in
        if request.operation == .deleteObjects { return [.status(501)] }
        guard request.operation == .deleteObject, ["/films/a/1", "/films/a/3"].contains(request.path) else { return [] }
        return [.status(403, body: "<Error><Code>AccessDenied</Code></Error>")]
      }
      let failure = (await bench.deleteS3("films/a/", recursively: true)).failure
      #expect(failure?.code.rawValue == "s3_access_denied" && failure?.class == .fail)
      #expect(failure?.message.contains("s3://films/a/1") == true && failure?.message.contains("1 other") == true)
      #expect(bench.server.objects.count == 2)
    }
  }

  @Test("a page of which the bulk deletion always fails is deleted object by object") func brokenBulk() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.options.pageSize = 2
      for number in 0..<4 { bench.server.put("films/a/\(number)", bytes: [1]) }
      bench.server.script { $0.operation == .deleteObjects && $0.ordinal <= 6 ? [.status(500)] : [] }
      #expect(await bench.deleteS3("films/a/", recursively: true) == .output(4, #"{"files":4,"bytes":4}"#))
      // The other page is tried in bulk again.
      #expect(bench.server.exchanges(.deleteObjects).count == 7)
      #expect(bench.server.exchanges(.deleteObject).count == 2)
    }
  }

  @Test("objects that come while others are deleted, of the same time, make no count fall below what was before")
  func comesMeanwhile() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("films/a/1", bytes: [1])
      bench.server.script { [server = bench.server] request in
        if request.operation == .deleteObjects, request.ordinal == 1 {
          server.put("films/a/2", bytes: [UInt8](repeating: 2, count: 100))
        }
        return []
      }
      let outcome = await bench.deleteS3("films/a/", recursively: true)
      // The time of an object has whole seconds.
      #expect(
        outcome == .output(100, #"{"files":1,"bytes":100}"#) || outcome == .output(101, #"{"files":2,"bytes":101}"#),
        "\(outcome)")
      #expect(bench.server.objects.isEmpty)
    }
  }

  @Test("an object that is listed again although the store has confirmed its deletion counts once") func listedAgain()
    async throws
  {
    try await RemoteDeleteBench.run { bench in
      for number in 0..<4 { bench.server.put("films/a/\(number)", bytes: [1]) }
      bench.server.script {
        $0.operation == .deleteObjects && $0.ordinal == 1 ? [.status(200, body: "<DeleteResult/>")] : []
      }
      #expect(await bench.deleteS3("films/a/", recursively: true) == .output(4, #"{"files":4,"bytes":4}"#))
      #expect(bench.server.objects.isEmpty)
    }
  }

  @Test("errors of single objects that may pass are tried again") func passing() async throws {
    try await RemoteDeleteBench.run { bench in
      for number in 0..<3 { bench.server.put("films/a/\(number)", bytes: [1]) }
      let answer = """
        <DeleteResult><Error><Key>a/1</Key><Code>InternalError</Code></Error>\
        <Error><Key>a/2</Key><Code>SlowDown</Code></Error></DeleteResult>
        """
      bench.server.script { $0.operation == .deleteObjects && $0.ordinal == 1 ? [.status(200, body: answer)] : [] }
      #expect((await bench.deleteS3("films/a/", recursively: true)).failure == nil)
      #expect(bench.server.objects.isEmpty)
      // The third time the requests themselves are refused for a while.
      for number in 0..<3 { bench.server.put("films/a/\(number)", bytes: [1]) }
      bench.server.script { [.slowDown(times: $0.operation == .listObjects ? 1 : 0)] }
      #expect(await bench.deleteS3("films/a/", recursively: true) == .output(3, #"{"files":3,"bytes":3}"#))
    }
  }

  @Test("a folder has no size to compare, and needs to be deleted recursively") func words() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.put("films/a/b.mp4", bytes: [1])
      let exact = (await bench.deleteS3("films/a/", recursively: true) { $0.expect.bytes = 1 }).failure
      #expect(exact?.code == .parametersInvalid && exact?.class == .fail)
      #expect((await bench.deleteS3("films/a/")).failure?.code == .parametersInvalid)
      #expect((await bench.deleteS3("films/a", recursively: true)).failure?.code == .parametersInvalid)
      #expect(bench.server.objects.count == 1)
    }
  }

  @Test("a run that loses its task between two pages deletes no further page") func lostTask() async throws {
    try await RemoteDeleteBench.run { bench in
      bench.server.options.pageSize = 2
      for number in 0..<6 { bench.server.put("films/a/\(number)", bytes: [1]) }
      let gate = OriginGate()
      bench.server.script { $0.operation == .listObjects && $0.ordinal == 2 ? [.holdAnswer(gate)] : [] }
      let ledger = Lock<RunLedger?>(nil)
      let run = Task {
        await bench.delete("") {
          $0.source = "s3://films/a/"
          $0.credential = "s3"
          $0.parameters = Array(#"{"recursive":true}"#.utf8)
        } ledger: { made in
          ledger.withLock { $0 = made }
        }
      }
      _ = await bench.server.first { $0.operation == .listObjects && $0.request.ordinal == 2 }
      ledger.withLock { $0?.disown() }
      gate.open()
      #expect(await run.value == .stopped)
      #expect(bench.server.objects.count == 4)
    }
  }
}
