/* A disk of a chosen slowness, whatever the real one does: to be preloaded into a server whose store is on tmpfs.
 *
 * fsync, fdatasync and msync(MS_SYNC) sleep for BENCH_DISK_US microseconds before they do what they are asked to;
 * so do writes to files that were opened with O_DSYNC or O_SYNC, such as LMDB's meta page, and writes with RWF_DSYNC
 * or RWF_SYNC. Every BENCH_DISK_SPIKE_EVERY-th of them takes BENCH_DISK_SPIKE_US instead.
 *
 * With BENCH_DISK_CUT_AT = N the N-th write to a regular file below BENCH_DISK_CUT_IN is torn: it ends at a boundary
 * of sectors inside it, which BENCH_DISK_CUT_SEED chooses, maybe before its first byte, and the process is killed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 65536, SECTOR = 512 };
static unsigned char durable[FILES];
static __thread int precise;
static long delay, spike, spike_every, cut_at;
static unsigned long cut_seed;
static const char *cut_in;
static atomic_long waits, writes;

static long number(const char *name)
{
    const char *given = getenv(name);
    return given ? atol(given) : 0;
}

__attribute__((constructor)) static void read_environment(void)
{
    delay = number("BENCH_DISK_US");
    spike = number("BENCH_DISK_SPIKE_US");
    spike_every = number("BENCH_DISK_SPIKE_EVERY");
    cut_in = getenv("BENCH_DISK_CUT_IN");
    cut_at = cut_in ? number("BENCH_DISK_CUT_AT") : 0;
    cut_seed = (unsigned long)number("BENCH_DISK_CUT_SEED");
}

static void wait_for_disk(void)
{
    long us = delay;
    if (spike_every && (atomic_fetch_add(&waits, 1) + 1) % spike_every == 0)
        us = spike;
    if (!precise) {
        prctl(PR_SET_TIMERSLACK, 1UL); /* else 50 us are added to each sleep */
        precise = 1;
    }
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

static int opened(int file, int flags)
{
    if (file >= 0 && file < FILES)
        durable[file] = (flags & O_DSYNC) != 0; /* O_SYNC has the bit, too */
    return file;
}

static int is_store(int file)
{
    char link[64], path[4096];
    struct stat found;
    if (fstat(file, &found) || !S_ISREG(found.st_mode))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    return length > 0 && !strncmp(path, cut_in, strlen(cut_in));
}

/* Writes the sectors before the cut, one part after the other, and ends the process. By a descriptor of its own: that of the process may
 * bypass the page cache, and would want whole pages. */
static void tear(int file, const struct iovec *parts, int count, off_t at)
{
    off_t end = at;
    for (int i = 0; i < count; i++)
        end += (off_t)parts[i].iov_len;
    off_t inside = (end - 1) / SECTOR - at / SECTOR; /* boundaries */
    unsigned long any = (cut_seed * 2654435761UL + (unsigned long)cut_at) * 6364136223846793005UL >> 33;
    off_t chosen = (off_t)(any % (unsigned long)(inside + 1));
    off_t stop = chosen ? (at / SECTOR + chosen) * SECTOR : at;
    ssize_t (*real)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite64");
    int (*real_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", file);
    file = real_open(self, O_WRONLY);
    for (int i = 0; i < count && at < stop; i++) {
        size_t length = parts[i].iov_len;
        if ((off_t)length > stop - at)
            length = (size_t)(stop - at);
        if (real(file, parts[i].iov_base, length, at) != (ssize_t)length)
            break;
        at += (off_t)length;
    }
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* Before each write. */
static void writing(int file, const struct iovec *parts, int count, off_t at, int syncs)
{
    if (cut_at && is_store(file) && atomic_fetch_add(&writes, 1) + 1 == cut_at)
        tear(file, parts, count, at < 0 ? lseek(file, 0, SEEK_CUR) : at);
    if (syncs || (file >= 0 && file < FILES && durable[file]))
        wait_for_disk();
}

static void writing_one(int file, const void *data, size_t length, off_t at)
{
    struct iovec part = {(void *)data, length};
    writing(file, &part, 1, at, 0);
}

#define REAL(type, name, ...)                              \
    static type (*real)(__VA_ARGS__);                      \
    if (!real)                                             \
        real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define OPEN(name)                                         \
    int name(const char *path, int flags, ...)             \
    {                                                      \
        REAL(int, #name, const char *, int, ...);          \
        va_list more;                                      \
        va_start(more, flags);                             \
        mode_t mode = va_arg(more, mode_t);                \
        va_end(more);                                      \
        return opened(real(path, flags, mode), flags);     \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                       \
    int name(int directory, const char *path, int flags, ...) \
    {                                                      \
        REAL(int, #name, int, const char *, int, ...);     \
        va_list more;                                      \
        va_start(more, flags);                             \
        mode_t mode = va_arg(more, mode_t);                \
        va_end(more);                                      \
        return opened(real(directory, path, flags, mode), flags); \
    }
OPENAT(openat)
OPENAT(openat64)

#define SYNC(name)                                         \
    int name(int file)                                     \
    {                                                      \
        REAL(int, #name, int);                             \
        wait_for_disk();                                   \
        return real(file);                                 \
    }
SYNC(fsync)
SYNC(fdatasync)

int msync(void *address, size_t length, int flags)
{
    REAL(int, "msync", void *, size_t, int);
    if (flags & MS_SYNC)
        wait_for_disk();
    return real(address, length, flags);
}

#define PWRITE(name, offset_type)                                              \
    ssize_t name(int file, const void *data, size_t length, offset_type at)    \
    {                                                                          \
        REAL(ssize_t, #name, int, const void *, size_t, offset_type);          \
        writing_one(file, data, length, at);                                   \
        return real(file, data, length, at);                                   \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t write(int file, const void *data, size_t length)
{
    REAL(ssize_t, "write", int, const void *, size_t);
    writing_one(file, data, length, -1);
    return real(file, data, length);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    writing(file, parts, count, -1, 0);
    return real(file, parts, count);
}

#define PWRITEV(name, offset_type)                                                       \
    ssize_t name(int file, const struct iovec *parts, int count, offset_type at)         \
    {                                                                                    \
        REAL(ssize_t, #name, int, const struct iovec *, int, offset_type);               \
        writing(file, parts, count, at, 0);                                              \
        return real(file, parts, count, at);                                             \
    }
PWRITEV(pwritev, off_t)
PWRITEV(pwritev64, off64_t)

#define PWRITEV2(name, offset_type)                                                      \
    ssize_t name(int file, const struct iovec *parts, int count, offset_type at, int flags) \
    {                                                                                    \
        REAL(ssize_t, #name, int, const struct iovec *, int, offset_type, int);          \
        writing(file, parts, count, at, (flags & (RWF_DSYNC | RWF_SYNC)) != 0);          \
        return real(file, parts, count, at, flags);                                      \
    }
PWRITEV2(pwritev2, off_t)
PWRITEV2(pwritev64v2, off64_t)
