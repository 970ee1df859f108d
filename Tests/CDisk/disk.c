// The calls of the test process that write, sync and rename. A symbol of the executable goes before the C library's.
#define _GNU_SOURCE
#include "disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

static _Atomic(rh_disk_observer) current;

void rh_observe_disk(rh_disk_observer observer) { current = observer; }

static int before(rh_disk_call call, int fd, const char *name, int64_t offset, int64_t length) {
  rh_disk_observer observer = current;
  return observer ? observer(call, fd, name, offset, length, NULL) : 0;
}

static int64_t after(rh_disk_call call, int fd, const char *name, int64_t offset, int64_t length, int64_t result) {
  rh_disk_observer observer = current;
  int failure = errno;
  if (observer) observer(call, fd, name, offset, length, &result);
  errno = failure;
  return result;
}

// The C library's function of the same name, looked up once.
#define SYSTEM(name)                                                  \
  static _Atomic(void *) found;                                       \
  if (!found) found = dlsym(RTLD_NEXT, #name);                        \
  __typeof__(&name) system_##name = (__typeof__(&name))(void *)found

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  SYSTEM(pwrite);
  before(RH_DISK_WRITE, fd, NULL, offset, (int64_t)count);
  return after(RH_DISK_WRITE, fd, NULL, offset, (int64_t)count, system_pwrite(fd, bytes, count, offset));
}

ssize_t copy_file_range(int from, off_t *in, int to, off_t *out, size_t length, unsigned flags) {
  SYSTEM(copy_file_range);
  int64_t offset = out ? *out : 0;
  before(RH_DISK_WRITE, to, NULL, offset, (int64_t)length);
  ssize_t count = system_copy_file_range(from, in, to, out, length, flags);
  return after(RH_DISK_WRITE, to, NULL, offset, (int64_t)length, count);
}

static int sync_of(int fd, int (*system)(int)) {
  int failure = before(RH_DISK_SYNC, fd, NULL, 0, 0);
  if (failure) errno = failure;
  return (int)after(RH_DISK_SYNC, fd, NULL, 0, 0, failure ? -1 : system(fd));
}

int fdatasync(int fd) {
  SYSTEM(fdatasync);
  return sync_of(fd, system_fdatasync);
}

int fsync(int fd) {
  SYSTEM(fsync);
  return sync_of(fd, system_fsync);
}

int renameat(int from, const char *old, int to, const char *name) {
  SYSTEM(renameat);
  before(RH_DISK_RENAME, to, name, 0, 0);
  return (int)after(RH_DISK_RENAME, to, name, 0, 0, system_renameat(from, old, to, name));
}

int renameat2(int from, const char *old, int to, const char *name, unsigned flags) {
  SYSTEM(renameat2);
  before(RH_DISK_RENAME, to, name, 0, 0);
  return (int)after(RH_DISK_RENAME, to, name, 0, 0, system_renameat2(from, old, to, name, flags));
}
