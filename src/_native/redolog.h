/* The redo log's files: segments, records, their checksums. No Python, no LMDB.
 *
 * DIRECTORY/segment-N is a slot of a fixed size that is reused again and again. Its first page is a SegmentHead, which is written and
 * synced together with the first record after it. The next records follow, each at a multiple of 8:
 *     RecordHead, then op_count times: RecordOp, key, value; then zeros up to a multiple of 8
 * 1. Records are numbered consecutively; the first one of a segment has the number SegmentHead.first.
 * 2. A checksum begins with the log's id, the epoch and the sequence number of the segment, so that bytes of an earlier use of the slot,
 *    or of a message's body, do not pass as a record.
 * 3. The writer waits for the sync of a record before it writes the next one. Therefore a torn record is the last one: a valid record
 *    after an invalid one means that the file was damaged.
 * 4. A slot is reused only after LMDB has synced all of its records. */
#ifndef MSMQ_FAST_REDOLOG_H
#define MSMQ_FAST_REDOLOG_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#define REDO_PAGE 4096u
#define REDO_SLOTS 2u
#define REDO_ID 16u
#define REDO_VERSION 1u
#define REDO_STEP ((size_t)1 << 20)   /* how far small records zero the file ahead */
#define REDO_SMALL ((size_t)64 << 10) /* a larger record takes the blocks that it needs with its own sync */
#define REDO_LEAST ((size_t)1 << 16)  /* bytes of a segment */
#define REDO_MOST ((size_t)1 << 30)

#define REDO_PUT 0x00
#define REDO_DELETE 0x01
#define REDO_NEW 0x02 /* of a put: the key has never been in the table */

/* Results of segment_check, besides errno values. */
#define REDO_EMPTY (-1)   /* never used */
#define REDO_FOREIGN (-2) /* of another log */
#define REDO_DAMAGED (-3)
#define REDO_CUT (-4)

#pragma pack(push, 1)

typedef struct {
    char magic[8];
    uint32_t version;
    uint32_t size; /* bytes of the segment */
    uint8_t id[REDO_ID];
    uint64_t epoch;    /* of the opening that wrote it */
    uint64_t sequence; /* of the segment, grows */
    uint64_t first;    /* number of its first record */
    uint32_t reserved;
    uint32_t crc; /* over the bytes before */
} SegmentHead;

typedef struct {
    uint32_t crc; /* over the bytes that follow it, begun with segment_seed() */
    uint32_t length;
    uint64_t number;
    uint32_t op_count;
    uint32_t reserved;
} RecordHead;

typedef struct {
    uint8_t kind, table;
    uint16_t key_len;
    uint32_t value_len;
} RecordOp;

#pragma pack(pop)

_Static_assert(sizeof(SegmentHead) == 64, "SegmentHead is stored, within one sector");
_Static_assert(sizeof(RecordHead) == 24, "RecordHead is stored");
_Static_assert(sizeof(RecordOp) == 8, "RecordOp is stored");

static const char REDO_MAGIC[8] = "MSMQLOG1";

typedef struct {
    int fd;
    uint8_t *data;  /* what the file holds, `size` bytes of memory */
    size_t size;
    size_t used;    /* up to the end of the last record; 0: no head yet */
    size_t written; /* up to here the file has blocks */
    uint64_t epoch, sequence, first, last; /* first > last: no record */
    uint32_t seed;
} Segment;

/* ---- CRC32C */

static uint32_t crc_table[256];
static int crc_hardware;
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void crc_prepare(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0);
        crc_table[i] = value;
    }
#if defined(__x86_64__)
    __builtin_cpu_init();
    crc_hardware = __builtin_cpu_supports("sse4.2") != 0;
#elif defined(__aarch64__) && defined(HWCAP_CRC32)
    crc_hardware = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
#endif
}

static uint32_t crc_by_table(uint32_t crc, const uint8_t *data, size_t size) {
    while (size--)
        crc = crc >> 8 ^ crc_table[(crc ^ *data++) & 0xFF];
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_by_hardware(uint32_t crc, const uint8_t *data, size_t size) {
    uint64_t wide = crc, word;
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    while (size--)
        crc = __builtin_ia32_crc32qi(crc, *data++);
    return crc;
}
#elif defined(__aarch64__)
#pragma GCC push_options
#pragma GCC target("+crc")
static uint32_t crc_by_hardware(uint32_t crc, const uint8_t *data, size_t size) {
    uint64_t word;
    for (; size >= 8; data += 8, size -= 8) {
        memcpy(&word, data, 8);
        crc = __builtin_aarch64_crc32cx(crc, word);
    }
    while (size--)
        crc = __builtin_aarch64_crc32cb(crc, *data++);
    return crc;
}
#pragma GCC pop_options
#else
#define crc_by_hardware crc_by_table
#endif

/* Computes a CRC32C that continues from `crc`; 0 begins one. */
static uint32_t crc32c(uint32_t crc, const void *data, size_t size) {
    pthread_once(&crc_once, crc_prepare);
    return ~(crc_hardware ? crc_by_hardware(~crc, data, size) : crc_by_table(~crc, data, size));
}

/* ---- building a record, in the segment's memory behind the last one */

static uint32_t segment_seed(const uint8_t id[REDO_ID], uint64_t epoch, uint64_t sequence) {
    uint32_t crc = crc32c(0, id, REDO_ID);
    crc = crc32c(crc, &epoch, sizeof epoch);
    return crc32c(crc, &sequence, sizeof sequence);
}

static inline size_t record_padded(size_t length) { return (length + 7) & ~(size_t)7; }

static inline size_t op_size(size_t key_len, size_t value_len) { return sizeof(RecordOp) + key_len + value_len; }

/* Whether a record of `length` bytes fits behind the last one. */
static inline int segment_has_room(const Segment *seg, size_t length) {
    return (seg->used ? seg->used : REDO_PAGE) + record_padded(length) <= seg->size;
}

/* Prepares an unused segment for its first record; changes only memory. */
static void segment_begin(Segment *seg, const uint8_t id[REDO_ID], uint64_t epoch, uint64_t sequence, uint64_t first) {
    SegmentHead head = {.version = REDO_VERSION, .size = (uint32_t)seg->size, .epoch = epoch, .sequence = sequence, .first = first};
    memcpy(head.magic, REDO_MAGIC, sizeof head.magic);
    memcpy(head.id, id, REDO_ID);
    head.crc = crc32c(0, &head, offsetof(SegmentHead, crc));
    memset(seg->data, 0, REDO_PAGE);
    memcpy(seg->data, &head, sizeof head);
    seg->used = REDO_PAGE;
    seg->epoch = epoch;
    seg->sequence = sequence;
    seg->first = first;
    seg->last = first - 1;
    seg->seed = segment_seed(id, epoch, sequence);
}

static inline uint8_t *record_op(uint8_t *at, int kind, int table, const void *key, size_t key_len, const void *head, size_t head_len,
                                 const void *body, size_t body_len) {
    RecordOp op = {(uint8_t)kind, (uint8_t)table, (uint16_t)key_len, (uint32_t)(head_len + body_len)};
    memcpy(at, &op, sizeof op);
    memcpy(at += sizeof op, key, key_len);
    at += key_len;
    if (head_len)
        memcpy(at, head, head_len);
    if (body_len)
        memcpy(at + head_len, body, body_len);
    return at + head_len + body_len;
}

/* Fills in the head of the record whose ops end at `end`. Returns its length. */
static size_t record_close(Segment *seg, uint8_t *end, uint64_t number, uint32_t op_count) {
    uint8_t *start = seg->data + seg->used;
    size_t length = record_padded((size_t)(end - start));
    memset(end, 0, (size_t)(start + length - end));
    RecordHead head = {0, (uint32_t)length, number, op_count, 0};
    memcpy(start, &head, sizeof head);
    head.crc = crc32c(seg->seed, start + sizeof head.crc, length - sizeof head.crc);
    memcpy(start, &head.crc, sizeof head.crc);
    return length;
}

/* ---- files */

/* Writes whole pages, in memory as well as in the file: the descriptor may bypass the page cache. */
static int write_whole(int fd, const uint8_t *data, size_t size, off_t at) {
    while (size) {
        ssize_t done = pwrite(fd, data, size, at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : ENOSPC;
        data += done;
        at += done;
        size -= (size_t)done;
    }
    return 0;
}

static inline size_t page_end(size_t at) { return (at + REDO_PAGE - 1) & ~(size_t)(REDO_PAGE - 1); }

/* Allocating a block for a file makes a sync write metadata. For small records, allocates and zeroes several blocks at a time. A failure
 * does no harm. */
static void zero_ahead(Segment *seg, size_t end, size_t length) {
    static const uint8_t zeros[1 << 16] __attribute__((aligned(REDO_PAGE)));
    struct iovec parts[REDO_STEP / sizeof zeros];
    size_t target = (end + REDO_STEP) & ~(REDO_STEP - 1);
    int count = 0;
    if (end <= seg->written)
        return;
    seg->written = end;
    if (length > REDO_SMALL)
        return;
    if (target > seg->size)
        target = seg->size;
    for (size_t at = end; at < target; at += sizeof zeros)
        parts[count++] = (struct iovec){(void *)zeros, target - at < sizeof zeros ? target - at : sizeof zeros};
    ssize_t done = pwritev(seg->fd, parts, count, (off_t)end);
    if (done > 0)
        seg->written += (size_t)done & ~(size_t)(REDO_PAGE - 1);
}

/* Writes and syncs the record of `length` bytes that record_close completed. Nothing is stored unless it returns 0. If *lost is set, a
 * sync has failed, and the content of the file is unknown. Writes whole pages, so that none must be read first. */
static int segment_append(Segment *seg, size_t length, uint64_t number, int *lost) {
    size_t from = seg->used == REDO_PAGE ? 0 : seg->used & ~(size_t)(REDO_PAGE - 1), end = seg->used + length, stop = page_end(end);
    *lost = 0;
    if (stop > seg->size)
        stop = seg->size;
    memset(seg->data + end, 0, stop - end);
    int status = write_whole(seg->fd, seg->data + from, stop - from, (off_t)from);
    if (status)
        return status;
    zero_ahead(seg, stop, length);
    if (fdatasync(seg->fd)) {
        *lost = 1;
        return errno;
    }
    seg->used = end;
    seg->last = number;
    return 0;
}

/* Returns the memory of a segment without records to the system. It is available again, zeroed, when it is written to. */
static void segment_discard(Segment *seg) { madvise(seg->data, seg->size, MADV_DONTNEED); }

static void segment_close(Segment *seg) {
    if (seg->fd >= 0)
        close(seg->fd);
    if (seg->data)
        munmap(seg->data, seg->size);
    seg->fd = -1;
    seg->data = NULL;
    seg->size = 0;
}

static int segment_memory(Segment *seg, size_t size) {
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
        return ENOMEM;
    seg->data = data;
    seg->size = size;
    return 0;
}

static void slot_name(char name[32], unsigned index) { snprintf(name, 32, "segment-%u", index); }

/* Opens or creates slot `index` for writing, with `size` bytes; its records must be in LMDB already. 0, or an errno. */
static int segment_create(Segment *seg, int directory, unsigned index, size_t size) {
    char name[32];
    struct stat found;
    slot_name(name, index);
    memset(seg, 0, sizeof *seg);
    int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, status = 0;
    /* The page cache would hold everything twice, and write large folios again for a few bytes of each. */
    seg->fd = openat(directory, name, flags | O_DIRECT, 0600);
    if (seg->fd < 0 && errno == EINVAL)
        seg->fd = openat(directory, name, flags, 0600);
    if (seg->fd < 0)
        return errno;
    /* A head with another size would look like a segment that was truncated. */
    if (fstat(seg->fd, &found) ||
        ((size_t)found.st_size != size && (ftruncate(seg->fd, 0) || ftruncate(seg->fd, (off_t)size))) || fsync(seg->fd))
        status = errno;
    if (!status)
        status = segment_memory(seg, size);
    if (status) {
        segment_close(seg);
        return status;
    }
    off_t hole = lseek(seg->fd, 0, SEEK_HOLE);
    seg->written = hole > 0 ? (size_t)hole : 0;
    seg->first = 1;
    return 0;
}

/* Reads slot `index` into memory. 0, ENOENT, or another errno. */
static int segment_load(Segment *seg, int directory, unsigned index) {
    char name[32];
    struct stat found;
    slot_name(name, index);
    memset(seg, 0, sizeof *seg);
    seg->fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (seg->fd < 0)
        return errno;
    int status = fstat(seg->fd, &found) ? errno : 0;
    size_t size = status ? 0 : (size_t)found.st_size, at = 0;
    if (!status && (size > REDO_MOST || !S_ISREG(found.st_mode)))
        status = EFBIG;
    if (!status)
        status = segment_memory(seg, size < REDO_PAGE ? REDO_PAGE : size);
    while (!status && at < size) {
        ssize_t got = pread(seg->fd, seg->data + at, size - at, (off_t)at);
        if (got > 0)
            at += (size_t)got;
        else if (got == 0)
            break; /* cut meanwhile */
        else if (errno != EINTR)
            status = errno;
    }
    seg->written = at;
    if (status)
        segment_close(seg);
    return status;
}

/* ---- checking what was read */

/* The length of the record at `at`, or 0 if there is none. `number` 0: of any number above `above`. */
static size_t record_check(const Segment *seg, size_t at, uint64_t number, uint64_t above) {
    RecordHead head;
    if (at + sizeof head > seg->size)
        return 0;
    memcpy(&head, seg->data + at, sizeof head);
    if (head.length < sizeof head || head.length & 7 || head.length > seg->size - at || head.reserved)
        return 0;
    if (number ? head.number != number : head.number <= above || head.number - above > UINT32_MAX)
        return 0;
    if (crc32c(seg->seed, seg->data + at + sizeof head.crc, head.length - sizeof head.crc) != head.crc)
        return 0;
    size_t from = at + sizeof head, end = at + head.length;
    for (uint32_t i = 0; i < head.op_count; i++) {
        RecordOp op;
        if (end - from < sizeof op)
            return 0;
        memcpy(&op, seg->data + from, sizeof op);
        from += sizeof op;
        if (op.key_len == 0 || op.key_len > 511 || (op.kind & REDO_DELETE && op.value_len) || op.kind & ~(REDO_DELETE | REDO_NEW) ||
            (size_t)op.key_len + op.value_len > end - from)
            return 0;
        from += (size_t)op.key_len + op.value_len;
    }
    return end - from < 8 ? head.length : 0;
}

/* Whether a segment without a head has more than one record: the first one is synced together with the head. */
static int lost_its_head(const Segment *seg) {
    RecordHead first, second;
    if (seg->size < REDO_PAGE + 2 * sizeof first)
        return 0;
    memcpy(&first, seg->data + REDO_PAGE, sizeof first);
    if (first.length < sizeof first || first.length > seg->size - REDO_PAGE - sizeof second)
        return 0;
    memcpy(&second, seg->data + REDO_PAGE + first.length, sizeof second);
    return second.number && second.number == first.number + 1;
}

/* Finds the records of a loaded segment. Returns 0, REDO_EMPTY, REDO_FOREIGN (`id` NULL: none is foreign), REDO_DAMAGED, REDO_CUT.
 * Records up to `applied` may be missing. */
static int segment_check(Segment *seg, const uint8_t *id, uint64_t applied) {
    static const char nothing[sizeof(SegmentHead)];
    SegmentHead head;
    memcpy(&head, seg->data, sizeof head);
    seg->first = 1;
    seg->last = 0;
    if (!memcmp(&head, nothing, sizeof head))
        return lost_its_head(seg) ? REDO_DAMAGED : REDO_EMPTY;
    if (memcmp(head.magic, REDO_MAGIC, sizeof head.magic) || crc32c(0, &head, offsetof(SegmentHead, crc)) != head.crc ||
        head.version != REDO_VERSION || !head.first)
        return REDO_DAMAGED;
    seg->epoch = head.epoch;
    seg->sequence = head.sequence;
    if (id && memcmp(head.id, id, REDO_ID))
        return REDO_FOREIGN;
    if (seg->written < head.size)
        return REDO_CUT;
    seg->seed = segment_seed(head.id, head.epoch, head.sequence);
    seg->first = head.first;
    seg->last = head.first - 1;
    seg->used = REDO_PAGE;
    size_t length;
    while ((length = record_check(seg, seg->used, seg->last + 1, 0))) {
        seg->used += length;
        seg->last++;
    }
    uint64_t known = seg->last > applied ? seg->last : applied;
    for (size_t at = seg->used; at + sizeof(RecordHead) <= seg->size; at += 8)
        if (record_check(seg, at, 0, known))
            return REDO_DAMAGED;
    return 0;
}

#endif
