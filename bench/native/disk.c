/* The disk alone: what any durable design must wait for, without a server.
 *
 * Usage: disk --dir DIRECTORY [--rounds N] [--modes NAME,NAME,…]
 *
 * Appends go to a file that was filled with zeros and synced before, so that no write changes its size or its
 * blocks; at its end they begin anew. LONE bytes are a commit of one message of 1 KiB, BATCH bytes one of 255.
 *
 *   append-…      pwrite and fdatasync; pwritev2 with RWF_DSYNC; pwrite to a file opened with O_DIRECT and
 *                 O_DSYNC, whole pages
 *   scattered-…   what a B-tree writes: pages in many places, fdatasync, then one page through O_DSYNC;
 *                 7 pages for the lone message, 211 for the batch, one in eight in a place of its own
 *   inline-…      append of a lone message on the thread of the event loop
 *   thread-…      the same on another thread, which signals an eventfd that the loop waits for. With …-idle
 *                 the loop sleeps until then; with …-busy it works in slices of SLICE_US and looks in between
 *
 * The modes take turns in blocks. A mode that the file system or the kernel refuses is left out. The time of a
 * mode is from the first system call, or from handing over to the thread, until the loop knows of the end.
 * Prints one JSON object: for each mode its bytes and its times. */
#include "common.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/uio.h>

enum {
    PAGE = 4096, FILE_PAGES = 4096, FILE_SIZE = FILE_PAGES * PAGE,
    LONE = 1331, BATCH = 306 * 1024,
    LONE_PAGES = 7, BATCH_PAGES = 211, SCATTERED = 8,
    SLICE_US = 20, BETWEEN_US = 500,        /* of a busy loop: a slice of other work, and between two appends */
    BLOCK = 10,
};

static int plain, direct, meta;
static uint8_t *body;
static off_t end_of_log;
static uint64_t seed;

static uint32_t any(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed % below);
}

/* Where the next append goes; whole pages when it must be aligned. */
static off_t next_place(size_t size, int aligned)
{
    if (aligned) end_of_log = (end_of_log + PAGE - 1) / PAGE * PAGE;
    if (end_of_log + (off_t)size > FILE_SIZE) end_of_log = 0;
    off_t at = end_of_log;
    end_of_log += (off_t)size;
    return at;
}

static int whole(ssize_t written, size_t size)
{
    return written == (ssize_t)size ? 0 : -1;
}

static int append_fdatasync(size_t size)
{
    return whole(pwrite(plain, body, size, next_place(size, 0)), size) || fdatasync(plain) ? -1 : 0;
}

static int append_rwf_dsync(size_t size)
{
    struct iovec part = {body, size};
    return whole(pwritev2(plain, &part, 1, next_place(size, 0), RWF_DSYNC), size);
}

static int append_direct(size_t size)
{
    size = (size + PAGE - 1) / PAGE * PAGE;
    return direct < 0 ? -1 : whole(pwrite(direct, body, size, next_place(size, 1)), size);
}

static int scattered(size_t size)
{
    int pages = size == LONE ? LONE_PAGES : BATCH_PAGES, alone = size == LONE ? pages : pages / SCATTERED;
    for (int i = 0; i < alone; i++)
        if (whole(pwrite(plain, body, PAGE, (off_t)any(FILE_PAGES) * PAGE), PAGE)) return -1;
    size_t rest = (size_t)(pages - alone) * PAGE;
    if (rest && whole(pwrite(plain, body, rest, next_place(rest, 1)), rest)) return -1;
    if (fdatasync(plain)) return -1;
    return whole(pwrite(meta, body, PAGE, 0), PAGE);
}

/* The other thread: waits for a request, appends, signals the loop. */
static sem_t requests;
static int done_fd, failed;

static void *append_when_asked(void *unused)
{
    (void)unused;
    for (;;) {
        while (sem_wait(&requests)) ;
        if (append_fdatasync(LONE)) failed = 1;
        uint64_t one = 1;
        if (write(done_fd, &one, sizeof one) != sizeof one) failed = 1;
    }
    return NULL;
}

static void work_for(uint64_t us)
{
    for (uint64_t until = now_ns() + us * 1000; now_ns() < until; ) ;
}

static int loop_knows(int timeout_ms)
{
    struct pollfd wait = {.fd = done_fd, .events = POLLIN};
    uint64_t count;
    return poll(&wait, 1, timeout_ms) == 1 && read(done_fd, &count, sizeof count) == sizeof count;
}

static int by_thread(int busy)
{
    if (sem_post(&requests)) return -1;
    while (!loop_knows(busy ? 0 : -1))
        if (busy) work_for(SLICE_US);
    return failed ? -1 : 0;
}

static int thread_idle(size_t size) { (void)size; return by_thread(0); }
static int thread_busy(size_t size) { (void)size; return by_thread(1); }

typedef struct {
    const char *name;
    int (*run)(size_t);
    size_t size;
    int busy, refused, chosen;
    Histogram time;
} Mode;

static Mode modes[] = {
    {"append-fdatasync-lone", append_fdatasync, LONE, 0, 0, 0, {0}},
    {"append-rwf-dsync-lone", append_rwf_dsync, LONE, 0, 0, 0, {0}},
    {"append-direct-lone", append_direct, LONE, 0, 0, 0, {0}},
    {"scattered-lone", scattered, LONE, 0, 0, 0, {0}},
    {"append-fdatasync-batch", append_fdatasync, BATCH, 0, 0, 0, {0}},
    {"append-rwf-dsync-batch", append_rwf_dsync, BATCH, 0, 0, 0, {0}},
    {"append-direct-batch", append_direct, BATCH, 0, 0, 0, {0}},
    {"scattered-batch", scattered, BATCH, 0, 0, 0, {0}},
    {"inline-idle", append_fdatasync, LONE, 0, 0, 0, {0}},
    {"thread-idle", thread_idle, LONE, 0, 0, 0, {0}},
    {"inline-busy", append_fdatasync, LONE, 1, 0, 0, {0}},
    {"thread-busy", thread_busy, LONE, 1, 0, 0, {0}},
};
enum { MODES = sizeof modes / sizeof *modes };

static void choose(char *names)
{
    for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
        int found = 0;
        for (int i = 0; i < MODES; i++)
            if (!strcmp(modes[i].name, name)) found = modes[i].chosen = 1;
        if (!found) die("%s is not a mode", name);
    }
}

static int open_in(const char *directory, int flags)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/disk-XXXXXX", directory) >= (int)sizeof path) die("--dir is too long");
    int file = mkostemp(path, flags);
    if (file < 0) die("%s: %s", path, strerror(errno));
    char self[64];
    snprintf(self, sizeof self, "/proc/self/fd/%d", file);
    direct = open(self, O_RDWR | O_DIRECT | O_DSYNC);
    meta = open(self, O_RDWR | O_DSYNC);
    if (meta < 0 || unlink(path)) die("%s: %s", path, strerror(errno));
    return file;
}

static void prepare(const char *directory)
{
    plain = open_in(directory, O_CLOEXEC);
    body = need(aligned_alloc(PAGE, BATCH_PAGES * PAGE));
    memset(body, 0, BATCH_PAGES * PAGE);
    for (off_t at = 0; at < FILE_SIZE; at += PAGE * 16)
        if (whole(pwrite(plain, body, PAGE * 16, at), PAGE * 16)) die("write: %s", strerror(errno));
    if (fsync(plain)) die("fsync: %s", strerror(errno));
    if (getrandom(&seed, sizeof seed, 0) != sizeof seed) die("getrandom: %s", strerror(errno));
    seed |= 1;
    for (size_t i = 0; i < BATCH_PAGES * PAGE; i += 4) put32(body + i, any(UINT32_MAX));
    pthread_t thread;
    done_fd = eventfd(0, EFD_NONBLOCK);
    if (done_fd < 0 || sem_init(&requests, 0, 0) || pthread_create(&thread, NULL, append_when_asked, NULL))
        die("no thread: %s", strerror(errno));
}

static void measure(Mode *m)
{
    if (m->busy) work_for(BETWEEN_US);
    uint64_t begin = now_ns();
    if (m->run(m->size)) m->refused = 1;
    else hist_add(&m->time, now_ns() - begin);
}

int main(int argc, char **argv)
{
    const char *directory = NULL;
    long rounds = 500;
    int some = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--dir")) directory = argv[i + 1];
        else if (!strcmp(argv[i], "--rounds")) rounds = atol(argv[i + 1]);
        else if (!strcmp(argv[i], "--modes")) choose(argv[i + 1]), some = 1;
        else die("%s is not an option", argv[i]);
    }
    if (!directory || rounds < 1) die("--dir is needed");
    prepare(directory);
    for (long done = 0; done < rounds; done += BLOCK)
        for (int i = 0; i < MODES; i++)
            for (int n = 0; n < BLOCK && n < rounds - done; n++)
                if ((!some || modes[i].chosen) && !modes[i].refused) measure(&modes[i]);
    printf("{\"event\":\"result\",\"modes\":{");
    const char *between = "";
    for (int i = 0; i < MODES; i++) {
        if (!modes[i].time.count) continue;
        printf("%s\"%s\":{\"bytes\":%zu,\"time\":", between, modes[i].name, modes[i].size);
        hist_print_json(&modes[i].time);
        printf("}");
        between = ",";
    }
    printf("}}\n");
    return 0;
}
