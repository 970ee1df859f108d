extension TaskFailure {
  /// A stable snake_case word for programs and metrics: `http_404`, `digest_mismatch`, `disk_full` …
  ///
  /// The set is open: a handler may define its own codes, and rare results of libcurl are `curl_<number>`.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) {
      self.rawValue = rawValue
    }

    public var description: String { rawValue }
  }
}

/// Responses of an HTTP server.
extension TaskFailure.Code {
  private static let httpPrefix = "http_"

  /// The server answered with this status, which reports a failure.
  public static func http(_ status: Int) -> Self { Self(rawValue: "\(httpPrefix)\(status)") }

  /// The statuses with which a server takes no more requests for now.
  package static let refusals = [429, 503]

  /// The words with which an S3 store says that it is asked for too much, as codes.
  private static let throttling: Set<String> = [
    "s3_slow_down", "s3_slow_down_read", "s3_slow_down_write", "s3_service_unavailable", "s3_throttling",
    "s3_throttling_exception", "s3_too_many_requests", "s3_too_many_requests_exception", "s3_request_limit_exceeded",
    "s3_bandwidth_limit_exceeded", "s3_server_busy",
  ]

  /// Whether the server takes no more requests for now: fewer at once help.
  package var isRefusal: Bool {
    httpStatus.map(Self.refusals.contains) ?? Self.throttling.contains(rawValue)
  }

  /// What a failure with this code tells of its server.
  package enum OutageSign: Sendable {
    /// Nothing listens there, for any task.
    case unreachable
    /// It did not answer, or not by itself: it may be at odds with one file.
    case unanswered
  }

  /// Gateways and caches answer so when the server behind them does not.
  private static let gatewayFailures: Set<Int> = [502, 503, 504, 521, 522, 523]

  /// Whether the server has said so itself, and so is there.
  package var isAnswer: Bool { httpStatus != nil || rawValue.hasPrefix("s3_") }

  /// Nil if the failure is no sign that the server is out.
  package var signOfOutage: OutageSign? {
    switch self {
    case .resolveFailed, .connectFailed: .unreachable
    case .tlsFailed, .noResponse, .timedOut, .connectionCut, .sendFailed, .receiveFailed: .unanswered
    case Self(rawValue: "s3_service_unavailable"): .unanswered
    default: httpStatus.map(Self.gatewayFailures.contains) == true ? .unanswered : nil
    }
  }

  /// The status in a code that ``http(_:)`` made; nil for any other code.
  public var httpStatus: Int? {
    guard rawValue.hasPrefix(Self.httpPrefix), let status = Int(rawValue.dropFirst(Self.httpPrefix.count)),
      self == .http(status)
    else { return nil }
    return status
  }

  /// The response contradicts the request, or is not HTTP.
  public static let badResponse = Self(rawValue: "bad_response")
  /// The source redirects more often than the worker follows.
  public static let redirectLoop = Self(rawValue: "redirect_loop")
  /// The source redirects to a URL that is never followed.
  public static let redirectRefused = Self(rawValue: "redirect_refused")
}

/// Connections: the names of `CurlError.Code`, and one more.
extension TaskFailure.Code {
  /// The resolved address is refused as in ``addressRefused``, and is link-local or a metadata service: such an address
  /// hands out a machine's credentials.
  public static let addressGivesCredentials = Self(rawValue: "address_gives_credentials")
  /// The resolved address is in a network that the workers may not reach.
  public static let addressRefused = Self(rawValue: "address_refused")
  /// The worker's file of trusted authorities cannot be used.
  public static let caFileUnusable = Self(rawValue: "ca_file_unusable")
  public static let certificateExpired = Self(rawValue: "certificate_expired")
  public static let certificateMisnamed = Self(rawValue: "certificate_misnamed")
  public static let certificateUntrusted = Self(rawValue: "certificate_untrusted")
  public static let connectFailed = Self(rawValue: "connect_failed")
  /// The connection ended before the announced length.
  public static let connectionCut = Self(rawValue: "connection_cut")
  public static let headTooLarge = Self(rawValue: "head_too_large")
  /// The connection ended before a response began.
  public static let noResponse = Self(rawValue: "no_response")
  package static let receiveFailed = Self(rawValue: "receive_failed")
  package static let resolveFailed = Self(rawValue: "resolve_failed")
  package static let sendFailed = Self(rawValue: "send_failed")
  public static let timedOut = Self(rawValue: "timed_out")
  public static let tlsFailed = Self(rawValue: "tls_failed")
}

/// The source and its bytes.
extension TaskFailure.Code {
  public static let digestMismatch = Self(rawValue: "digest_mismatch")
  /// Two fetches of a source that announces no length have different bytes: one was cut short, or the source changes.
  public static let fetchesDiffer = Self(rawValue: "fetches_differ")
  /// The source announces no length, and nothing else would show that its bytes are complete.
  public static let lengthUnknown = Self(rawValue: "length_unknown")
  public static let sizeMismatch = Self(rawValue: "size_mismatch")
  /// The source keeps changing while it is fetched.
  public static let sourceChanging = Self(rawValue: "source_changing")
  /// A POST was sent as a whole and its answer was lost: the server may have taken the file.
  public static let answerLost = Self(rawValue: "answer_lost")
  /// The server has more bytes of an upload than were sent to it.
  public static let uploadAhead = Self(rawValue: "upload_ahead")
  /// An upload's source does not exist.
  public static let sourceMissing = Self(rawValue: "source_missing")
  public static let sourceInvalid = Self(rawValue: "source_invalid")
}

/// Credentials of a worker.
extension TaskFailure.Code {
  /// The task names no credential, and its place needs one.
  public static let credentialNeeded = Self(rawValue: "credential_needed")
  /// The credential is for other hosts.
  public static let credentialRefused = Self(rawValue: "credential_refused")
  /// The worker has no credential with this name.
  public static let credentialUnknown = Self(rawValue: "credential_unknown")
  /// The worker's file of credentials cannot be used.
  public static let credentialsUnusable = Self(rawValue: "credentials_unusable")
}

/// Storage roots and the files on them.
extension TaskFailure.Code {
  public static let destinationExists = Self(rawValue: "destination_exists")
  public static let destinationInvalid = Self(rawValue: "destination_invalid")
  public static let diskFull = Self(rawValue: "disk_full")
  /// The volume could not hold the file even if it were empty.
  public static let fileTooLarge = Self(rawValue: "file_too_large")
  public static let stagingForeign = Self(rawValue: "staging_foreign")
  public static let stagingMissing = Self(rawValue: "staging_missing")
  public static let stagingShort = Self(rawValue: "staging_short")
  public static let storageDenied = Self(rawValue: "storage_denied")
  public static let storageError = Self(rawValue: "storage_error")
  public static let storageIOError = Self(rawValue: "storage_io_error")
  /// The root's directory does not exist, or no running worker has the root.
  public static let storageMissing = Self(rawValue: "storage_missing")
  public static let storageNotInitialised = Self(rawValue: "storage_not_initialised")
  public static let storageReadOnly = Self(rawValue: "storage_read_only")
  /// The worker has no root with this name.
  public static let storageUnknown = Self(rawValue: "storage_unknown")
  /// The volume at the root is not the one that holds the task's bytes.
  public static let storageVolumeGone = Self(rawValue: "storage_volume_gone")
  public static let tooManyFiles = Self(rawValue: "too_many_files")
}

/// The worker and its store.
extension TaskFailure.Code {
  /// Progress could not be recorded.
  public static let checkpointFailed = Self(rawValue: "checkpoint_failed")
  /// The worker has no handler for this kind.
  public static let noHandler = Self(rawValue: "no_handler")
  /// The store refused the end of the run.
  public static let settlementRefused = Self(rawValue: "settlement_refused")
  /// A delete found a directory, but its task does not allow deleting directories.
  public static let isDirectory = Self(rawValue: "is_directory")
  /// A handler threw `CancellationError` although its run was not to stop.
  public static let handlerCanceled = Self(rawValue: "handler_canceled")
  /// The parameters cannot be decoded, or the kind's own check refuses them.
  public static let parametersInvalid = Self(rawValue: "parameters_invalid")
  /// This worker cannot read the checkpoint that another one recorded.
  public static let checkpointUnreadable = Self(rawValue: "checkpoint_unreadable")
  /// This worker's version cannot read the task that another one stored.
  public static let specUnreadable = Self(rawValue: "spec_unreadable")
  public static let outputTooLong = Self(rawValue: "output_too_long")
  /// Worker after worker ended, or lost contact, before the run recorded a checkpoint: the task may be the cause.
  public static let lostRepeatedly = Self(rawValue: "lost_repeatedly")
  /// The worker ended, or lost contact, and the task waits before it runs again.
  public static let workerLost = Self(rawValue: "worker_lost")
  /// The attempt took longer than the policy of its kind allows.
  public static let runTimedOut = Self(rawValue: "run_timed_out")
  /// The run made no progress for too long.
  public static let stalled = Self(rawValue: "stalled")
}
