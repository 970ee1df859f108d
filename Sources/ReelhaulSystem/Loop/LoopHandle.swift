import CReelhaulUV

/// The memory of one libuv handle: alive from ``open(context:)`` until libuv's close callback, whatever its owner does.
///
/// `Raw` is the C struct (`uv_timer_t`, `uv_poll_t` …). Its `data` field belongs to this class; the owner's context
/// is ``context``.
// @unchecked: owned by the loop's thread, as every libuv handle is.
final class LoopHandle<Raw>: @unchecked Sendable {
  let pointer: UnsafeMutablePointer<Raw>
  private(set) var context: AnyObject?
  private var isOpen = false

  init() {
    pointer = .allocate(capacity: 1)
  }

  deinit {
    pointer.deallocate()
  }

  /// The pointer to give to `uv_*_init`, which must succeed; retains `self` and `context` until the handle is closed.
  func open(context: AnyObject? = nil) -> UnsafeMutablePointer<Raw> {
    precondition(!isOpen)
    isOpen = true
    self.context = context
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
    return pointer
  }

  /// Closes the handle; later calls do nothing. The memory is freed after libuv's callback.
  func close() {
    guard isOpen else { return }
    isOpen = false
    context = nil
    uv_close(handle) { handle in
      Unmanaged<AnyObject>.fromOpaque(handle!.pointee.data).release()
    }
  }

  /// The context, as the type it was opened with; `nil` once closed.
  func owner<Owner: AnyObject>(as _: Owner.Type) -> Owner? {
    context as? Owner
  }

  /// The object behind a C callback's handle.
  static func from(_ pointer: UnsafeMutablePointer<Raw>?) -> LoopHandle<Raw> {
    let handle = UnsafeMutableRawPointer(pointer!).assumingMemoryBound(to: uv_handle_t.self)
    return Unmanaged<LoopHandle<Raw>>.fromOpaque(handle.pointee.data).takeUnretainedValue()
  }

  private var handle: UnsafeMutablePointer<uv_handle_t> {
    UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: uv_handle_t.self)
  }
}
