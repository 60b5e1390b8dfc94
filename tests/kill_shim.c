/* Preloaded by tests/kills.py: ends the process before a given call that changes files below a folder.

   arm(root, n) counts such calls from then on. Before call n the process gets SIGKILL; a write is made by half
   first. With n = 0 calls are only counted; count() returns their number. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char root[PATH_MAX];
static long last, calls;

void arm(const char *folder, long n) { strcpy(root, folder); last = n; calls = 0; }
long count(void) { return calls; }

static int is_below(int folder, const char *path) {
  char whole[2 * PATH_MAX] = "", link[64];
  if (!root[0]) return 0;
  if (!path || path[0] != '/') {
    if (folder == AT_FDCWD) { if (!getcwd(whole, PATH_MAX)) return 0; }
    else {
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      ssize_t n = readlink(link, whole, PATH_MAX - 1);
      if (n < 0) return 0;
      whole[n] = 0;
    }
    if (path) { strcat(whole, "/"); strncat(whole, path, PATH_MAX - 2); }
  } else strncpy(whole, path, PATH_MAX - 1);
  return !strncmp(whole, root, strlen(root));
}

static int is_last(int folder, const char *path) {
  return is_below(folder, path) && __sync_add_and_fetch(&calls, 1) == last;
}
static void end_before(int folder, const char *path) {
  if (is_last(folder, path)) kill(getpid(), SIGKILL);
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, #name)
#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

#define OPEN(name) int name(const char *path, int flags, ...) { \
  REAL(int, name, const char *, int, ...); va_list rest; va_start(rest, flags); \
  mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; va_end(rest); \
  if (flags & WRITING) { end_before(AT_FDCWD, path); } return real(path, flags, mode); }
OPEN(open) OPEN(open64)
#define OPENAT(name) int name(int folder, const char *path, int flags, ...) { \
  REAL(int, name, int, const char *, int, ...); va_list rest; va_start(rest, flags); \
  mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; va_end(rest); \
  if (flags & WRITING) { end_before(folder, path); } return real(folder, path, flags, mode); }
OPENAT(openat) OPENAT(openat64)

ssize_t write(int file, const void *data, size_t n) {
  REAL(ssize_t, write, int, const void *, size_t);
  if (is_last(file, NULL)) { real(file, data, n / 2); kill(getpid(), SIGKILL); }
  return real(file, data, n);
}
#define PWRITE(name, offset) ssize_t name(int file, const void *data, size_t n, offset at) { \
  REAL(ssize_t, name, int, const void *, size_t, offset); \
  if (is_last(file, NULL)) { real(file, data, n / 2, at); kill(getpid(), SIGKILL); } return real(file, data, n, at); }
PWRITE(pwrite, off_t) PWRITE(pwrite64, off64_t)
ssize_t writev(int file, const struct iovec *parts, int n) {
  REAL(ssize_t, writev, int, const struct iovec *, int); end_before(file, NULL); return real(file, parts, n); }

#define BY_PATH(name, declared, ...) int name declared { REAL(int, name, BY_##name); end_before(AT_FDCWD, path); return real(__VA_ARGS__); }
#define BY_unlink const char *
#define BY_rmdir const char *
#define BY_mkdir const char *, mode_t
#define BY_chmod const char *, mode_t
#define BY_truncate const char *, off_t
BY_PATH(unlink, (const char *path), path)
BY_PATH(rmdir, (const char *path), path)
BY_PATH(mkdir, (const char *path, mode_t mode), path, mode)
BY_PATH(chmod, (const char *path, mode_t mode), path, mode)
BY_PATH(truncate, (const char *path, off_t size), path, size)

int rename(const char *from, const char *to) {
  REAL(int, rename, const char *, const char *); end_before(AT_FDCWD, to); return real(from, to); }
int link(const char *from, const char *to) {
  REAL(int, link, const char *, const char *); end_before(AT_FDCWD, to); return real(from, to); }
int symlink(const char *from, const char *to) {
  REAL(int, symlink, const char *, const char *); end_before(AT_FDCWD, to); return real(from, to); }
int renameat(int a, const char *from, int b, const char *to) {
  REAL(int, renameat, int, const char *, int, const char *); end_before(b, to); return real(a, from, b, to); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  REAL(int, renameat2, int, const char *, int, const char *, unsigned); end_before(b, to);
  return real(a, from, b, to, flags); }
int unlinkat(int folder, const char *path, int flags) {
  REAL(int, unlinkat, int, const char *, int); end_before(folder, path); return real(folder, path, flags); }
int mkdirat(int folder, const char *path, mode_t mode) {
  REAL(int, mkdirat, int, const char *, mode_t); end_before(folder, path); return real(folder, path, mode); }
int fchmodat(int folder, const char *path, mode_t mode, int flags) {
  REAL(int, fchmodat, int, const char *, mode_t, int); end_before(folder, path);
  return real(folder, path, mode, flags); }
int fchmod(int file, mode_t mode) {
  REAL(int, fchmod, int, mode_t); end_before(file, NULL); return real(file, mode); }
int ftruncate(int file, off_t size) {
  REAL(int, ftruncate, int, off_t); end_before(file, NULL); return real(file, size); }
int ftruncate64(int file, off64_t size) {
  REAL(int, ftruncate64, int, off64_t); end_before(file, NULL); return real(file, size); }
int fsync(int file) { REAL(int, fsync, int); end_before(file, NULL); return real(file); }
int fdatasync(int file) { REAL(int, fdatasync, int); end_before(file, NULL); return real(file); }
int posix_fallocate(int file, off_t at, off_t n) {
  REAL(int, posix_fallocate, int, off_t, off_t); end_before(file, NULL); return real(file, at, n); }
