#define _GNU_SOURCE 1
#include "CReelhaulSystem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static _Thread_local void *current_loop;

__attribute__((noinline)) void *rh_current_loop(void) { return current_loop; }
__attribute__((noinline)) void rh_set_current_loop(void *loop) { current_loop = loop; }

static int64_t nanoseconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t rh_boottime_ns(void) { return nanoseconds(CLOCK_BOOTTIME); }
int64_t rh_realtime_ns(void) { return nanoseconds(CLOCK_REALTIME); }

static int result(long value) { return value < 0 ? -errno : (int)value; }

int rh_open(const char *path, int flags, mode_t mode) { return result(open(path, flags | O_CLOEXEC, mode)); }

int rh_open_beneath(int directory, const char *path, int flags, mode_t mode, bool crosses_mounts) {
  struct open_how how = {
      .flags = (uint64_t)(flags | O_CLOEXEC),
      .mode = (flags & O_CREAT) ? mode : 0,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | (crosses_mounts ? 0 : RESOLVE_NO_XDEV),
  };
  return result(syscall(SYS_openat2, directory, path, &how, sizeof how));
}

int rh_stat_beneath(int directory, const char *name, struct stat *status) {
  int fd = rh_open_beneath(directory, name, O_PATH | O_NOFOLLOW, 0, false);
  if (fd < 0) return fd;
  int outcome = result(fstat(fd, status));
  close(fd);
  return outcome;
}

uint64_t rh_mount(int directory, const char *path) {
  struct statx status = {0};
  int outcome = statx(directory, path, *path ? 0 : AT_EMPTY_PATH, STATX_MNT_ID, &status);
  return outcome == 0 && status.stx_mask & STATX_MNT_ID ? status.stx_mnt_id : 0;
}

const int rh_o_path = O_PATH;

int rh_list(int directory, void *buffer, size_t capacity) {
  return result(syscall(SYS_getdents64, directory, buffer, capacity));
}

int rh_fallocate(int fd, int64_t offset, int64_t length) { return result(fallocate(fd, 0, offset, length)); }

int64_t rh_copy_range(int from, int to, int64_t offset, int64_t length) {
  off_t in = offset, out = offset;
  ssize_t count = copy_file_range(from, &in, to, &out, (size_t)length, 0);
  return count < 0 ? -errno : count;
}

int rh_clone(int from, int to) { return result(ioctl(to, FICLONE, from)); }

int rh_rename_noreplace(int from_dir, const char *from, int to_dir, const char *to) {
  return result(renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE));
}

int rh_set_attribute(int fd, const char *name, const void *value, size_t length) {
  return result(fsetxattr(fd, name, value, length, 0));
}

int rh_get_attribute(int fd, const char *name, void *value, size_t capacity) {
  return result(fgetxattr(fd, name, value, capacity));
}

// The magic number of the file system; 0 if it cannot be told.
static uint32_t file_system(int fd) {
  struct statfs status;
  return fstatfs(fd, &status) == 0 ? (uint32_t)status.f_type : 0;
}

bool rh_closes_without_writing(int fd) {
  switch (file_system(fd)) {
  case EXT4_SUPER_MAGIC:
  case XFS_SUPER_MAGIC:
  case BTRFS_SUPER_MAGIC:
  case F2FS_SUPER_MAGIC:
  case TMPFS_MAGIC: return true;
  default: return false;
  }
}

bool rh_is_remote(int fd) {
  switch (file_system(fd)) {
  case 0:
  case NFS_SUPER_MAGIC:
  case SMB_SUPER_MAGIC:
  case CIFS_SUPER_MAGIC:
  case SMB2_SUPER_MAGIC:
  case AFS_SUPER_MAGIC:
  case AFS_FS_MAGIC:
  case CODA_SUPER_MAGIC:
  case CEPH_SUPER_MAGIC:
  case V9FS_MAGIC:
  case OCFS2_SUPER_MAGIC:
  case FUSE_SUPER_MAGIC:
  case 0x01161970: // GFS2
  case 0x0bd00bd0: // Lustre
  case 0x47504653: // GPFS
    return true;
  default: return false;
  }
}

int rh_pipe(int ends[2]) { return result(pipe2(ends, O_CLOEXEC)); }

int rh_accept(int socket) { return result(accept4(socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)); }

int rh_try_lock(int fd) { return result(flock(fd, LOCK_EX | LOCK_NB)); }

int rh_unlock(int fd) { return result(flock(fd, LOCK_UN)); }

void rh_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

int rh_die_with_parent(int signal, pid_t parent) {
  if (prctl(PR_SET_PDEATHSIG, signal) != 0) return -errno;
  if (getppid() != parent) raise(signal);
  return 0;
}

static uint32_t crc_table[256];

__attribute__((constructor)) static void make_crc_table(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = (c & 1) ? (c >> 1) ^ 0x82F63B78u : c >> 1;
    crc_table[i] = c;
  }
}

#if defined(__x86_64__)
#include <nmmintrin.h>
__attribute__((target("sse4.2"))) static uint32_t crc_hardware(uint32_t crc, const unsigned char *p, size_t n) {
  uint64_t c = crc;
  for (; n >= 8; p += 8, n -= 8) c = _mm_crc32_u64(c, *(const uint64_t *)(const void *)p);
  for (; n > 0; p++, n--) c = _mm_crc32_u8((uint32_t)c, *p);
  return (uint32_t)c;
}
#endif

uint32_t rh_crc32c(uint32_t crc, const void *data, size_t length) {
  const unsigned char *p = data;
  crc = ~crc;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~crc_hardware(crc, p, length);
#endif
  for (; length > 0; p++, length--) crc = crc_table[(crc ^ *p) & 255] ^ (crc >> 8);
  return ~crc;
}

// Runs in the memory of the parent, so it makes system calls only: glibc's setuid, for one, would wait for the parent's
// other threads.
static int become(const rh_spawn *request, pid_t parent) {
  // No handler of the parent may run here.
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  // Ctrl-C in a terminal is for the parent only, which ends its children in order.
  if (setpgid(0, 0) != 0) return errno;
  if (request->out) {
    int fd = open(request->out, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || dup2(fd, 1) < 0) return errno;
  }
  if (request->err) {
    int fd = open(request->err, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || dup2(fd, 2) < 0) return errno;
  }
  if (request->gid != (gid_t)-1 && (syscall(SYS_setgroups, 0, NULL) != 0 || syscall(SYS_setgid, request->gid) != 0))
    return errno;
  if (request->uid != (uid_t)-1 && syscall(SYS_setuid, request->uid) != 0) return errno;
  if (request->directory && chdir(request->directory) != 0) return errno;
  // After setuid, because setuid clears the death signal.
  if (request->death_signal && rh_die_with_parent(request->death_signal, parent) != 0) return errno;
  // What libraries have opened without O_CLOEXEC is none of the program's business. An old kernel cannot do it.
  syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
  execvpe(request->executable, request->argv, request->envp);
  return errno;
}

// With fork, the kernel would copy the page tables of all memory, for a child that leaves it at once.
int rh_spawn_process(const rh_spawn *request) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  volatile int failure = 0;
  pid_t parent = getpid(), child = vfork();
  if (child == 0) {
    failure = become(request, parent);
    _exit(127);
  }
  if (child < 0) failure = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failure == 0) return child;
  if (child > 0) waitpid(child, NULL, 0);
  return -failure;
}

int rh_terminal_columns(int fd) {
  struct winsize size;
  return ioctl(fd, TIOCGWINSZ, &size) < 0 ? -errno : size.ws_col;
}

int rh_terminal_rows(int fd) {
  struct winsize size;
  return ioctl(fd, TIOCGWINSZ, &size) < 0 ? -errno : size.ws_row;
}

void rh_bound_heap(void) {
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  mallopt(M_TRIM_THRESHOLD, 256 << 10);
}
