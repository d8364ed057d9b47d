/* Writes down every change that a process makes below one directory, in the order in which they happen.

   LD_PRELOAD it. RECORDER_ROOT is the directory, RECORDER_FILE the file that gets the events; RECORDER_SYNC_US is how
   many microseconds a sync takes at most, in place of a real one: the disk that counts is the one that is rebuilt.

   An event: u32 length of what follows, u8 what, u64 inode, u64 place, u32 length of the first bytes, the first bytes,
   the others. All are of the machine's order. Calls and their events are made under one lock, so a client that has its
   answer finds in the recording all that the answer relies on. recording.py reads it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[4096];
static int recording = -1;
static unsigned sync_us;
static unsigned char followed[FDS]; /* 1: a file below the directory, 2: one that is appended to, 4: a directory */

__attribute__((constructor)) static void begin(void) {
    const char *directory = getenv("RECORDER_ROOT"), *path = getenv("RECORDER_FILE"), *us = getenv("RECORDER_SYNC_US");
    if (!directory || !path) return;
    snprintf(root, sizeof root, "%s", directory);
    sync_us = us ? (unsigned)atoi(us) : 0;
    recording = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static void tell(char what, uint64_t inode, uint64_t place, const void *first, size_t n, const struct iovec *more, int count,
                 size_t left) {
    size_t size = 1 + 8 + 8 + 4 + n + left;
    char *event = malloc(4 + size), *at = event;
    uint32_t all = (uint32_t)size, small = (uint32_t)n;
    memcpy(at, &all, 4), at += 4;
    *at++ = what;
    memcpy(at, &inode, 8), at += 8;
    memcpy(at, &place, 8), at += 8;
    memcpy(at, &small, 4), at += 4;
    memcpy(at, first, n), at += n;
    for (int i = 0; i < count && left; i++) {
        size_t part = more[i].iov_len < left ? more[i].iov_len : left;
        memcpy(at, more[i].iov_base, part), at += part, left -= part;
    }
    char *from = event;
    while (from < at) {
        long done = syscall(SYS_write, recording, from, (size_t)(at - from));
        if (done <= 0) abort();
        from += done;
    }
    free(event);
}

/* The path of a name as another call would see it; 0: it is not below the directory. */
static int resolve(int at, const char *path, char *out) {
    if (path[0] == '/') {
        snprintf(out, 8192, "%s", path);
    } else {
        char link[64], base[4096];
        if (at == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", at);
            ssize_t n = readlink(link, base, sizeof base - 1);
            if (n < 0) return 0;
            base[n] = 0;
        }
        snprintf(out, 8192, "%s/%s", base, path);
    }
    size_t n = strlen(root);
    return recording >= 0 && n && !strncmp(out, root, n) && (out[n] == '/' || !out[n]);
}

static uint64_t inode_of(int fd, uint64_t *size) {
    struct stat found;
    if (fstat(fd, &found)) return 0;
    if (size) *size = (uint64_t)found.st_size;
    return (uint64_t)found.st_ino;
}

static int open_at(int at, const char *path, int flags, mode_t mode) {
    char whole[8192];
    if (!resolve(at, path, whole)) return (int)syscall(SYS_openat, at, path, flags | O_LARGEFILE, mode);
    pthread_mutex_lock(&lock);
    struct stat before;
    int was = !stat(whole, &before);
    int fd = (int)syscall(SYS_openat, at, path, flags | O_LARGEFILE, mode), error = errno;
    if (fd >= 0 && fd < FDS) {
        struct stat found;
        fstat(fd, &found);
        followed[fd] = S_ISDIR(found.st_mode) ? 4 : 1 | (flags & O_APPEND ? 2 : 0);
        if (!was && flags & O_CREAT) tell('c', found.st_ino, 0, whole, strlen(whole), NULL, 0, 0);
        if (was && flags & O_TRUNC && before.st_size) tell('t', found.st_ino, 0, "", 0, NULL, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}

#define MODE(flags, last) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, last); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *path, int flags, ...) { MODE(flags, flags) return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, flags) return open_at(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags, flags) return open_at(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags, flags) return open_at(at, path, flags, mode); }

int close(int fd) {
    if (fd >= 0 && fd < FDS) followed[fd] = 0;
    return (int)syscall(SYS_close, fd);
}

static int is_file(int fd) { return fd >= 0 && fd < FDS && followed[fd] & 1; }

static ssize_t written(int fd, off_t place, const struct iovec *parts, int count) {
    pthread_mutex_lock(&lock);
    uint64_t size = 0, inode = inode_of(fd, &size);
    off_t at = place >= 0 ? place : followed[fd] & 2 ? (off_t)size : (off_t)lseek(fd, 0, SEEK_CUR);
    ssize_t done = place >= 0 ? syscall(SYS_pwrite64, fd, parts[0].iov_base, parts[0].iov_len, place)
                              : syscall(SYS_writev, fd, parts, count);
    int error = errno;
    if (done > 0) tell('w', inode, (uint64_t)at, "", 0, parts, count, (size_t)done);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

ssize_t write(int fd, const void *data, size_t n) {
    struct iovec part = {(void *)data, n};
    return is_file(fd) ? written(fd, -1, &part, 1) : syscall(SYS_write, fd, data, n);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    return is_file(fd) ? written(fd, -1, parts, count) : syscall(SYS_writev, fd, parts, count);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t place) {
    struct iovec part = {(void *)data, n};
    return is_file(fd) ? written(fd, place, &part, 1) : syscall(SYS_pwrite64, fd, data, n, place);
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t place) { return pwrite64(fd, data, n, place); }

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t n, unsigned flags) {
    if (is_file(to)) { errno = EXDEV; return -1; } /* the caller reads and writes in its place */
    return syscall(SYS_copy_file_range, from, from_at, to, to_at, n, flags);
}

int ftruncate64(int fd, off64_t size) {
    if (!is_file(fd)) return (int)syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&lock);
    int failed = (int)syscall(SYS_ftruncate, fd, size), error = errno;
    if (!failed) tell('t', inode_of(fd, NULL), (uint64_t)size, "", 0, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return failed;
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int synced(int fd, long call) {
    if (fd < 0 || fd >= FDS || !followed[fd]) return (int)syscall(call, fd);
    static unsigned drawn = 1;
    /* what is synced is what was written before: later writes go on meanwhile */
    pthread_mutex_lock(&lock);
    char what = followed[fd] & 4 ? 'd' : 's';
    uint64_t inode = inode_of(fd, NULL), place = __atomic_add_fetch(&drawn, 1, __ATOMIC_RELAXED);
    tell('b', inode, place, "", 0, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    if (sync_us) usleep((unsigned)(rand() % (int)sync_us));
    pthread_mutex_lock(&lock);
    tell(what, inode, place, "", 0, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    return 0;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

static int named(char what, int old_at, const char *old, int new_at, const char *new, int flags, long call) {
    char first[8192], second[8192] = "";
    int inside = resolve(old_at, old, first) | (new ? resolve(new_at, new, second) : 0);
    if (inside) pthread_mutex_lock(&lock);
    struct stat found = {0};
    if (inside && what != 'm') lstat(first, &found);
    int failed = call == SYS_mkdirat ? (int)syscall(call, old_at, old, flags)
               : call == SYS_unlinkat ? (int)syscall(call, old_at, old, flags)
               : call == SYS_linkat ? (int)syscall(call, old_at, old, new_at, new, flags)
                                    : (int)syscall(SYS_renameat2, old_at, old, new_at, new, 0);
    int error = errno;
    if (inside && !failed) {
        if (what == 'm') lstat(first, &found);
        struct iovec more = {second, strlen(second)};
        tell(what, found.st_ino, 0, first, strlen(first), &more, 1, strlen(second));
    }
    if (inside) pthread_mutex_unlock(&lock);
    errno = error;
    return failed;
}

int mkdir(const char *path, mode_t mode) { return named('m', AT_FDCWD, path, 0, NULL, (int)mode, SYS_mkdirat); }
int mkdirat(int at, const char *path, mode_t mode) { return named('m', at, path, 0, NULL, (int)mode, SYS_mkdirat); }
int rmdir(const char *path) { return named('u', AT_FDCWD, path, 0, NULL, AT_REMOVEDIR, SYS_unlinkat); }
int unlink(const char *path) { return named('u', AT_FDCWD, path, 0, NULL, 0, SYS_unlinkat); }
int unlinkat(int at, const char *path, int flags) { return named('u', at, path, 0, NULL, flags, SYS_unlinkat); }
int rename(const char *a, const char *b) { return named('r', AT_FDCWD, a, AT_FDCWD, b, 0, SYS_renameat2); }
int renameat(int x, const char *a, int y, const char *b) { return named('r', x, a, y, b, 0, SYS_renameat2); }
int link(const char *a, const char *b) { return named('l', AT_FDCWD, a, AT_FDCWD, b, 0, SYS_linkat); }
int linkat(int x, const char *a, int y, const char *b, int flags) { return named('l', x, a, y, b, flags, SYS_linkat); }
