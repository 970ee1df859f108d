#pragma once
// Typed functions over what Swift cannot call (variadics, macros) or must not inline (thread-local state).
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The event loop that owns the calling thread, or NULL. Never inlined: the optimiser keeps an inlined thread-local
/// read across a suspension point, where the thread may have changed.
void *rh_current_loop(void);
void rh_set_current_loop(void *loop);

/// Nanoseconds since boot, suspension included (CLOCK_BOOTTIME).
int64_t rh_boottime_ns(void);
/// Nanoseconds of CLOCK_REALTIME since 1970.
int64_t rh_realtime_ns(void);

// All return 0 or a result >= 0, or -errno.

/// open(2) with O_CLOEXEC.
int rh_open(const char *path, int flags, mode_t mode);
/// openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS: `path` cannot leave `directory`.
int rh_open_beneath(int directory, const char *path, int flags, mode_t mode);
/// Allocates blocks and sets the size: fallocate(2), without the C library's slow emulation.
int rh_fallocate(int fd, int64_t offset, int64_t length);
/// renameat2(2) with RENAME_NOREPLACE.
int rh_rename_noreplace(int from_dir, const char *from, int to_dir, const char *to);
/// fsetxattr(2), fgetxattr(2): an attribute's bytes; the latter returns their number.
int rh_set_attribute(int fd, const char *name, const void *value, size_t length);
int rh_get_attribute(int fd, const char *name, void *value, size_t capacity);
/// flock(2) with LOCK_EX, -EWOULDBLOCK instead of waiting; LOCK_UN.
int rh_try_lock(int fd);
int rh_unlock(int fd);
/// Names the calling thread, at most 15 bytes.
void rh_name_thread(const char *name);
/// prctl(PR_SET_PDEATHSIG, signal) for the calling process; ends it at once when the parent is gone already.
int rh_die_with_parent(int signal, pid_t parent);

/// CRC32C (Castagnoli) of `length` bytes, continuing from `crc` (start with 0).
uint32_t rh_crc32c(uint32_t crc, const void *data, size_t length);


/// Removes a file or a directory with all it contains, links not followed; goes on where something refuses.
void rh_remove_tree(const char *path);

/// What rh_spawn_process starts.
typedef struct {
  const char *executable;
  char *const *argv;
  char *const *envp;
  const char *directory;
  /// Appended to; NULL inherits.
  const char *out, *err;
  /// (uid_t)-1 keeps the caller's.
  uid_t uid;
  gid_t gid;
  /// Sent to the child when the calling thread ends; 0: none.
  int death_signal;
} rh_spawn;

/// Starts a process with default signal handling and an empty mask. Returns its id, or -errno also where exec failed.
int rh_spawn_process(const rh_spawn *request);

/// The terminal's size in columns and rows (TIOCGWINSZ).
int rh_terminal_columns(int fd);
int rh_terminal_rows(int fd);

/// Makes malloc give memory back: few arenas, and thresholds that do not grow with what was once allocated.
void rh_bound_heap(void);
