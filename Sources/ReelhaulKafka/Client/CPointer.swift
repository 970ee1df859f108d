/// A C object on its way to the thread that owns it.
// @unchecked: used to hand over ownership, once.
struct CPointer: @unchecked Sendable {
  let pointer: OpaquePointer

  init(_ pointer: OpaquePointer) { self.pointer = pointer }
}
