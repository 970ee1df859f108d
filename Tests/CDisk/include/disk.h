#pragma once

#include <stdint.h>

typedef enum { RH_DISK_WRITE, RH_DISK_SYNC, RH_DISK_RENAME } rh_disk_call;

/// Sees a call before it is made (`result` is nil) and after it (`result` is what it returned). `name` is the new name of
/// a rename, in the directory `fd`; of a write `offset` and `length` are its bytes. Called on the thread of the call.
/// Before a sync it may return the `errno` with which the sync fails; elsewhere what it returns is ignored.
typedef int (*rh_disk_observer)(
    rh_disk_call call, int fd, const char *name, int64_t offset, int64_t length, const int64_t *result);

/// Puts `observer` before the C library's pwrite, copy_file_range, fdatasync, fsync, renameat and renameat2 of this process.
void rh_observe_disk(rh_disk_observer observer);
