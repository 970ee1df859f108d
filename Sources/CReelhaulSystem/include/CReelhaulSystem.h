#pragma once
// Typed functions for calls that Swift cannot make (variadics, macros) or must not inline (thread-local state).
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stat;

/// The event loop that owns the calling thread, or NULL. It must not be inlined: the optimiser would keep the
/// thread-local value across a suspension point, after which the thread may be another one.
void *rh_current_loop(void);
void rh_set_current_loop(void *loop);

/// Nanoseconds since boot, suspension included (CLOCK_BOOTTIME).
int64_t rh_boottime_ns(void);
/// Nanoseconds of CLOCK_REALTIME since 1970.
int64_t rh_realtime_ns(void);

// All functions below return 0 or a result >= 0, or -errno.

/// open(2) with O_CLOEXEC.
int rh_open(const char *path, int flags, mode_t mode);
/// pipe2(2) with O_CLOEXEC: the reading end and the writing end.
int rh_pipe(int ends[2]);
// A connection that waits at a socket. It does not block.
int rh_accept(int socket);
/// openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS: `path` cannot leave `directory`.
/// Unless it crosses mounts, also with RESOLVE_NO_XDEV: -EXDEV if something is mounted at `path` or on the way.
int rh_open_beneath(int directory, const char *path, int flags, mode_t mode, bool crosses_mounts);
/// lstat(2) of `name` in `directory`: -EXDEV if something is mounted there.
int rh_stat_beneath(int directory, const char *name, struct stat *status);
/// The mount that `path` leads to, or that an open `directory` is on, if the path is empty: 0 if the kernel does not tell it.
uint64_t rh_mount(int directory, const char *path);
/// O_PATH of open(2).
extern const int rh_o_path;
/// getdents64(2): the number of bytes of `struct dirent` that it has put into `buffer`, or 0 at the end.
int rh_list(int directory, void *buffer, size_t capacity);
/// Allocates blocks and sets the size: fallocate(2), without the C library's slow emulation.
int rh_fallocate(int fd, int64_t offset, int64_t length);
/// copy_file_range(2) between equal offsets. Returns the number of copied bytes, 0 at the end of `from`.
int64_t rh_copy_range(int from, int to, int64_t offset, int64_t length);
/// ioctl_ficlone(2): `to` shares all blocks of `from`.
int rh_clone(int from, int to);
/// renameat2(2) with RENAME_NOREPLACE.
int rh_rename_noreplace(int from_dir, const char *from, int to_dir, const char *to);
/// fsetxattr(2) and fgetxattr(2). The latter returns the number of bytes of the attribute.
int rh_set_attribute(int fd, const char *name, const void *value, size_t length);
int rh_get_attribute(int fd, const char *name, void *value, size_t capacity);
/// Whether close(2) writes nothing on the file system of `fd`: ext2 to ext4, XFS, Btrfs, F2FS and tmpfs. Network file systems
/// write a file's changes before they close it.
bool rh_closes_without_writing(int fd);
/// Whether another machine, or a program, serves the file system: NFS, SMB, AFS, Ceph, Lustre, GPFS, GFS2, OCFS2, 9P, FUSE.
bool rh_is_remote(int fd);
/// flock(2) with LOCK_EX, which returns -EWOULDBLOCK instead of waiting; and with LOCK_UN.
int rh_try_lock(int fd);
int rh_unlock(int fd);
/// Names the calling thread, at most 15 bytes.
void rh_name_thread(const char *name);
/// prctl(PR_SET_PDEATHSIG, signal) for the calling process. Ends the process at once if the parent has already ended.
int rh_die_with_parent(int signal, pid_t parent);

/// CRC32C (Castagnoli) of `length` bytes, continuing from `crc` (start with 0).
uint32_t rh_crc32c(uint32_t crc, const void *data, size_t length);

/// The process that rh_spawn_process starts.
typedef struct {
  const char *executable;
  char *const *argv;
  char *const *envp;
  const char *directory;
  /// Files that the output is appended to; NULL inherits.
  const char *out, *err;
  /// (uid_t)-1 keeps the caller's user.
  uid_t uid;
  gid_t gid;
  /// The signal that the child receives when the calling thread ends; 0 for no signal.
  int death_signal;
} rh_spawn;

/// Starts a process with default signal handling and an empty mask. Returns its id, or -errno, also if exec failed.
int rh_spawn_process(const rh_spawn *request);

/// The terminal's size in columns and rows (TIOCGWINSZ).
int rh_terminal_columns(int fd);
int rh_terminal_rows(int fd);

/// Makes malloc return memory to the system: few arenas, and thresholds that do not grow with earlier allocations.
void rh_bound_heap(void);
