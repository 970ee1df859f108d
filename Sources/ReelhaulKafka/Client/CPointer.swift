/// A C object that is handed over to the thread that owns it.
// @unchecked: used only to hand over ownership, once.
struct CPointer: @unchecked Sendable {
  let pointer: OpaquePointer

  init(_ pointer: OpaquePointer) { self.pointer = pointer }
}
