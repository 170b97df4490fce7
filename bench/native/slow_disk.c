/* A disk of a chosen slowness, whatever the real one does: to be preloaded into a server whose store is on tmpfs.
 *
 * fsync, fdatasync and msync(MS_SYNC) sleep for BENCH_DISK_US microseconds before they do what they are asked to;
 * so do writes to files that were opened with O_DSYNC or O_SYNC, such as LMDB's meta page.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FILES 65536
static unsigned char durable[FILES];
static __thread int precise;

static void wait_for_disk(void)
{
    static long delay = -1;
    if (delay < 0) {
        const char *given = getenv("BENCH_DISK_US");
        delay = given ? atol(given) : 0;
    }
    if (!precise) {
        prctl(PR_SET_TIMERSLACK, 1UL); /* else 50 us are added to each sleep */
        precise = 1;
    }
    struct timespec left = {delay / 1000000, delay % 1000000 * 1000};
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

static int opened(int file, int flags)
{
    if (file >= 0 && file < FILES)
        durable[file] = (flags & O_DSYNC) != 0; /* O_SYNC has the bit, too */
    return file;
}

static void written(int file)
{
    if (file >= 0 && file < FILES && durable[file])
        wait_for_disk();
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
        written(file);                                                         \
        return real(file, data, length, at);                                   \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t write(int file, const void *data, size_t length)
{
    REAL(ssize_t, "write", int, const void *, size_t);
    written(file);
    return real(file, data, length);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at)
{
    REAL(ssize_t, "pwritev", int, const struct iovec *, int, off_t);
    written(file);
    return real(file, parts, count, at);
}
