/* Preloaded into a store's process: records, in order, what is written to files named data.mdb and segment-N, what is synced, and
 * what is acknowledged (written to a file named ledger). Also makes their syncs or writes fail on demand.
 *
 * Record: type u8 ('W' write, 'D' write through a descriptor that syncs itself, 'T' truncation to the offset, 'S' sync, 'A'
 * acknowledgment), file u8 (0 data.mdb, N + 1 segment-N), offset u64, length u32, bytes. Environment: SHIM_LOG = where to record;
 * SHIM_FAIL_SYNC, SHIM_FAIL_WRITE = file whose existence makes it fail; SHIM_KILL = "WHAT N": the process is killed in the middle
 * of the N-th write or sync of data.mdb ("data") or of a segment ("segment"), or of the N-th write of a segment's head ("head").
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NOTHING, DATA, DATA_SYNCING, LEDGER };
static unsigned char kind_of[4096], file_of[4096];
static int log_fd = -2;
static char kill_what[16];
static long kill_after;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static int (*real_ftruncate)(int, off_t);
static int (*real_fdatasync)(int);
static int (*real_fsync)(int);
static int (*real_close)(int);

__attribute__((constructor)) static void prepare(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_writev = dlsym(RTLD_NEXT, "writev");
    real_open = dlsym(RTLD_NEXT, "open64");
    real_openat = dlsym(RTLD_NEXT, "openat64");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_close = dlsym(RTLD_NEXT, "close");
    const char *path = getenv("SHIM_LOG");
    log_fd = path ? real_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    const char *point = getenv("SHIM_KILL");
    if (point)
        sscanf(point, "%15s %ld", kill_what, &kill_after);
}

static int kind(int fd) { return fd >= 0 && fd < (int)sizeof kind_of ? kind_of[fd] : NOTHING; }

static int told_to_fail(const char *variable) {
    const char *path = getenv(variable);
    return path && access(path, F_OK) == 0;
}

/* Whether a write at `offset`, or a sync (offset -1), is the one that the process is to be killed in. */
static int is_the_end(int fd, off_t offset) {
    const char *what = file_of[fd] == 0 ? "data" : offset == 0 && strcmp(kill_what, "head") == 0 ? "head" : "segment";
    return strcmp(kill_what, what) == 0 && __atomic_sub_fetch(&kill_after, 1, __ATOMIC_SEQ_CST) == 0;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    pause();
}

static void record(char type, int fd, uint64_t offset, const void *data, uint32_t length) {
    if (log_fd < 0)
        return;
    char head[14];
    head[0] = type;
    head[1] = (char)file_of[fd];
    memcpy(head + 2, &offset, 8);
    memcpy(head + 10, &length, 4);
    struct iovec parts[2] = {{head, sizeof head}, {(void *)data, length}};
    pthread_mutex_lock(&lock);
    if (real_writev(log_fd, parts, 2) != (ssize_t)(sizeof head + length))
        abort();
    pthread_mutex_unlock(&lock);
}

static int opened(const char *path, int flags, int fd) {
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (fd >= 0 && fd < (int)sizeof kind_of) {
        unsigned segment;
        kind_of[fd] = NOTHING;
        file_of[fd] = 0;
        if (strcmp(name, "data.mdb") == 0) {
            kind_of[fd] = flags & O_DSYNC ? DATA_SYNCING : DATA;
        } else if (sscanf(name, "segment-%u", &segment) == 1) {
            kind_of[fd] = DATA;
            file_of[fd] = (unsigned char)(segment + 1);
        } else if (strcmp(name, "ledger") == 0)
            kind_of[fd] = LEDGER;
    }
    return fd;
}

int openat64(int directory, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    return opened(path, flags, real_openat(directory, path, flags, mode));
}

int openat(int directory, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    return opened(path, flags, real_openat(directory, path, flags, mode));
}

int ftruncate64(int fd, off_t size) {
    int status = real_ftruncate(fd, size);
    if (status == 0 && kind(fd) == DATA)
        record('T', fd, size, NULL, 0);
    return status;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    return opened(path, flags, real_open(path, flags, mode));
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    int mode = va_arg(more, int);
    va_end(more);
    return opened(path, flags, real_open(path, flags, mode));
}

int close(int fd) {
    if (fd >= 0 && fd < (int)sizeof kind_of)
        kind_of[fd] = NOTHING;
    return real_close(fd);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) {
    int which = kind(fd);
    if ((which == DATA || which == DATA_SYNCING) && told_to_fail("SHIM_FAIL_WRITE")) {
        errno = EIO;
        return -1;
    }
    if ((which == DATA || which == DATA_SYNCING) && is_the_end(fd, offset)) {
        if (length >= 8192)
            real_pwrite(fd, data, length / 2 & ~(size_t)4095, offset);
        die();
    }
    ssize_t done = real_pwrite(fd, data, length, offset);
    if (done > 0 && (which == DATA || which == DATA_SYNCING))
        record(which == DATA ? 'W' : 'D', fd, offset, data, done);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) { return pwrite64(fd, data, length, offset); }

/* liblmdb seeks and then writes several pages in one call. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    int which = kind(fd);
    if (which != DATA)
        return real_writev(fd, parts, count);
    if (told_to_fail("SHIM_FAIL_WRITE")) {
        errno = EIO;
        return -1;
    }
    off_t offset = lseek(fd, 0, SEEK_CUR);
    if (is_the_end(fd, offset)) {
        if (count > 1)
            real_writev(fd, parts, count / 2);
        die();
    }
    ssize_t done = real_writev(fd, parts, count), left = done;
    for (int i = 0; i < count && left > 0; i++) {
        size_t length = parts[i].iov_len < (size_t)left ? parts[i].iov_len : (size_t)left;
        record('W', fd, offset, parts[i].iov_base, length);
        offset += length;
        left -= length;
    }
    return done;
}

ssize_t write(int fd, const void *data, size_t length) {
    ssize_t done = real_write(fd, data, length);
    if (done > 0 && kind(fd) == LEDGER)
        record('A', fd, 0, data, done);
    return done;
}

static int synced(int fd, int (*really)(int)) {
    if (kind(fd) != DATA)
        return really(fd);
    if (told_to_fail("SHIM_FAIL_SYNC")) {
        errno = EIO;
        return -1;
    }
    if (is_the_end(fd, -1))
        die();
    int status = really(fd);
    if (status == 0)
        record('S', fd, 0, NULL, 0);
    return status;
}

int fdatasync(int fd) { return synced(fd, real_fdatasync); }
int fsync(int fd) { return synced(fd, real_fsync); }
