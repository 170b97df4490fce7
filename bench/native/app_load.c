/* Producers and consumers over the application protocol (docs/reference/application-protocol.md), all in one thread.
 *
 * Usage: app_load --socket PATH --queue NAME [--produce CONNECTIONS] [--consume CONNECTIONS] [--express]
 *                 [--body BYTES] [--batch N] [--window N] [--credit N] [--acknowledge] [--receive] [--lockstep]
 *                 [--level] [--backlog N] [--rate N] [--warmup S] [--seconds S] [--count N] [--max-bytes N]
 *
 * A producer keeps `window` messages unanswered, `batch` in each SEND; its time runs from the write to the SENT, which
 * comes when the messages are on disk. A consumer streams with `credit`, or with --receive has one RECEIVE waiting.
 * --lockstep sends one message when the one before was answered and delivered. --backlog holds producers while
 * so many messages are answered or under way and not delivered. --level lets consumers take one message for each that
 * was answered, so that what was in the queue before stays its depth. --rate sends so many messages a second, all
 * producers together, on a schedule: times run from when a message was due, however late it left. Bodies of at least
 * 16 bytes carry the time of the send and a number: the consumer side measures the time from end to end, and with one
 * consumer checks the order.
 *
 * Prints {"event":"start"}, {"event":"stop"} and the result, one JSON object a line. */
#include "app.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>

enum {
    FIRST_ID = 16,              /* request ids of SEND frames: FIRST_ID + slot */
    SUBSCRIPTION_ID = 8,
    RECEIVE_ID = 9,
    STAMP = 16,                 /* send time u64, connection << 48 | number u64 */
    MAX_CONNECTIONS = 256,
};

typedef struct {
    uint8_t *frame;
    uint64_t sent_at;
} Slot;

typedef struct {
    int fd, index, producer;
    int want_write;
    uint32_t handle;
    uint8_t *in;
    size_t in_have, in_capacity;
    Buffer out;                 /* control frames of a consumer */
    size_t out_done;
    Slot *slot;                 /* producer: frames prepared ahead */
    uint32_t *free_slot, free_count;
    uint32_t *ready;            /* ring of filled slots not yet in the socket */
    uint32_t ready_from, ready_count;
    size_t frame_done;          /* bytes of the first ready frame already written */
    uint64_t number;
    uint64_t due;               /* producer with a rate: when its next frame is to leave */
    uint32_t consumed;          /* since the last credit */
    uint64_t granted;           /* credit so far */
} Connection;

static const char *queue_name;
static int producers, consumers, express, acknowledge, use_receive, lockstep, level;
static uint32_t body_size = 1024, batch = 1, window = 64, credit = 1024, slots;
static uint64_t backlog, count_limit, max_bytes;
static uint64_t interval;       /* nanoseconds between two frames of a producer, 0: as fast as it goes */
static size_t frame_size, *body_offset;
static Connection connections[MAX_CONNECTIONS];
static int connection_count, poll_fd;
static int sending, measuring;
static uint64_t produced, answered, delivered, out_of_order;
static uint64_t in_messages, out_messages, measured_bytes, last_event_ns;
static uint64_t expected[MAX_CONNECTIONS];
static Histogram confirm, end_to_end;

__attribute__((noreturn)) static void refused(Reader r)
{
    uint64_t name_size, text_size;
    if (mp_array(&r) < 3) die("malformed error frame");
    uint64_t hresult = mp_uint(&r);
    const uint8_t *name = mp_bytes(&r, &name_size), *text = mp_bytes(&r, &text_size);
    die("the server says %08llX %.*s: %.*s", (unsigned long long)hresult, (int)name_size, name, (int)text_size, text);
}

/* ---- set-up, with blocking calls ---- */

/* Sends what the buffer holds and returns the payload of the reply, kept in the buffer. */
static Reader ask(Connection *c, Buffer *b)
{
    int kind = frame_ask(c->fd, b);
    Reader r = {b->data, b->data + b->size};
    if (kind == ERROR_FRAME) refused(r);
    if (kind != REPLY) die("reply expected, frame type %02x found", kind);
    b->size = 0;
    return r;
}

static void prepare_frames(Connection *c)
{
    Buffer b = {0};
    size_t at = frame_begin(&b, SEND, 0);
    mp_put_array(&b, 3);
    mp_put_uint(&b, c->handle);
    mp_put_uint(&b, 0);
    mp_put_array(&b, batch);
    for (uint32_t i = 0; i < batch; i++) {
        mp_put_array(&b, 3);
        body_offset[i] = mp_put_bin(&b, body_size);
        for (uint32_t k = 0; k < body_size; k++) b.data[body_offset[i] + k] = (uint8_t)(k * 131 + 7);
        mp_put_text(&b, "");
        mp_put_uint(&b, express ? 0 : 1);
    }
    frame_end(&b, at);
    frame_size = b.size;
    slots = window / batch ? window / batch : 1;
    c->slot = need(calloc(slots, sizeof *c->slot));
    c->free_slot = need(calloc(slots, sizeof *c->free_slot));
    c->ready = need(calloc(slots, sizeof *c->ready));
    for (uint32_t i = 0; i < slots; i++) {
        c->slot[i].frame = need(malloc(frame_size));
        memcpy(c->slot[i].frame, b.data, frame_size);
        put_big_endian32(c->slot[i].frame + 5, FIRST_ID + i);
        c->free_slot[c->free_count++] = slots - 1 - i;
    }
    free(b.data);
}

static void open_connection(Connection *c, const char *path, int producer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) die("socket path too long");
    strcpy(address.sun_path, path);
    c->producer = producer;
    c->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) die("%s: %s", path, strerror(errno));
    Buffer b = {0};
    frame_begin(&b, HELLO, 1);
    *buffer_extend(&b, 1) = 0x81;
    mp_put_text(&b, "version");
    mp_put_uint(&b, 1);
    ask(c, &b);
    frame_begin(&b, OPEN, 2);
    mp_put_array(&b, 2);
    mp_put_text(&b, queue_name);
    mp_put_uint(&b, producer ? 2 : 1);
    Reader r = ask(c, &b);
    if (mp_array(&r) < 1) die("malformed reply to OPEN");
    c->handle = (uint32_t)mp_uint(&r);
    free(b.data);
    c->in_capacity = 256 * 1024;
    c->in = need(malloc(c->in_capacity));
    if (producer) prepare_frames(c);
    set_nonblocking(c->fd);
    struct epoll_event add = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &add)) die("epoll_ctl: %s", strerror(errno));
}

/* ---- running ---- */

static void interest(Connection *c, int write)
{
    if (c->want_write == write) return;
    struct epoll_event change = {.events = EPOLLIN | (write ? EPOLLOUT : 0u), .data.ptr = c};
    epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->fd, &change);
    c->want_write = write;
}

/* Bytes written, 0 when the socket is full. */
static size_t write_some(Connection *c, const uint8_t *data, size_t size)
{
    ssize_t n = send(c->fd, data, size, MSG_NOSIGNAL);
    if (n >= 0) return (size_t)n;
    if (errno != EAGAIN && errno != EINTR) die("send: %s", strerror(errno));
    return 0;
}

static void flush_control(Connection *c)
{
    while (c->out_done < c->out.size) {
        size_t n = write_some(c, c->out.data + c->out_done, c->out.size - c->out_done);
        if (!n) {
            interest(c, 1);
            return;
        }
        c->out_done += n;
    }
    c->out.size = c->out_done = 0;
    interest(c, 0);
}

/* Queues a frame of two numbers and, unless it is negative, a truth value. */
static void control(Connection *c, int type, uint32_t id, uint64_t first, uint64_t second, int third)
{
    size_t at = frame_begin(&c->out, type, id);
    mp_put_array(&c->out, third < 0 ? 2 : 3);
    mp_put_uint(&c->out, first);
    mp_put_uint(&c->out, second);
    if (third >= 0) *buffer_extend(&c->out, 1) = third ? 0xc3 : 0xc2;
    frame_end(&c->out, at);
}

static void acknowledge_range(Connection *c, uint64_t first, uint64_t last)
{
    size_t at = frame_begin(&c->out, ACKNOWLEDGE, 0);
    mp_put_array(&c->out, 3);
    mp_put_uint(&c->out, SUBSCRIPTION_ID);
    mp_put_uint(&c->out, first);
    mp_put_uint(&c->out, last);
    frame_end(&c->out, at);
}

static void ask_for_one(Connection *c)
{
    size_t at = frame_begin(&c->out, RECEIVE, RECEIVE_ID);
    mp_put_array(&c->out, 2);
    mp_put_uint(&c->out, c->handle);
    mp_put_uint(&c->out, 0xffffffffu);
    frame_end(&c->out, at);
}

static int may_send(void)
{
    if (!sending || (count_limit && produced >= count_limit)) return 0;
    if (lockstep) return answered == produced && (!consumers || delivered >= produced);
    return !backlog || !consumers || produced - delivered < backlog;
}

static void fill(Connection *c)
{
    while (c->free_count && may_send()) {
        uint64_t now = now_ns();
        if (interval && c->due > now) break;
        uint32_t index = c->free_slot[--c->free_count];
        Slot *slot = &c->slot[index];
        slot->sent_at = interval ? c->due : now;
        c->due += interval;
        for (uint32_t i = 0; i < batch && body_size >= STAMP; i++) {
            uint64_t number = (uint64_t)c->index << 48 | ++c->number;
            memcpy(slot->frame + body_offset[i], &slot->sent_at, 8);
            memcpy(slot->frame + body_offset[i] + 8, &number, 8);
        }
        c->ready[(c->ready_from + c->ready_count++) % slots] = index;
        produced += batch;
    }
}

static void pump(Connection *c)
{
    fill(c);
    while (c->ready_count) {
        /* One write for several small frames: they lie in separate slots, so sendmsg gathers them. */
        struct iovec iov[64];
        int parts = 0;
        size_t skip = c->frame_done;
        for (uint32_t i = 0; i < c->ready_count && parts < 64; i++, skip = 0)
            iov[parts++] = (struct iovec){c->slot[c->ready[(c->ready_from + i) % slots]].frame + skip, frame_size - skip};
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)parts};
        ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) die("send: %s", strerror(errno));
        if (n < 0) {
            interest(c, 1);
            return;
        }
        size_t bytes = c->frame_done + (size_t)n;
        uint32_t whole = (uint32_t)(bytes / frame_size);
        c->frame_done = bytes % frame_size;
        c->ready_from = (c->ready_from + whole) % slots;
        c->ready_count -= whole;
    }
    interest(c, 0);
}

static void take_message(Reader *r, uint64_t now)
{
    uint64_t fields = mp_array(r), size;
    if (fields < 2) die("malformed message");
    mp_skip(r);
    const uint8_t *body = mp_bytes(r, &size);
    for (fields -= 2; fields; fields--) mp_skip(r);
    delivered++;
    last_event_ns = now;
    uint64_t sent_at = 0, number = 0;
    if (size >= STAMP) {
        memcpy(&sent_at, body, 8);
        memcpy(&number, body + 8, 8);
        uint64_t from = number >> 48, sequence = number & 0xffffffffffffu;
        if (consumers == 1 && from < MAX_CONNECTIONS) {
            if (expected[from] && sequence != expected[from]) out_of_order++;
            expected[from] = sequence + 1;
        }
    }
    if (measuring) {
        out_messages++;
        if (!producers) measured_bytes += size;
        if (sent_at && sent_at <= now) hist_add(&end_to_end, now - sent_at);
    }
}

static void take_sent(Connection *c, uint32_t id, Reader r, uint64_t now)
{
    if (mp_array(&r) < 2 || id < FIRST_ID || id >= FIRST_ID + slots) die("malformed SENT");
    uint64_t count = mp_uint(&r);
    if (count != batch) {
        if (mp_array(&r)) {
            uint64_t index, size;
            if (mp_array(&r) < 4) die("malformed refusal");
            index = mp_uint(&r);
            mp_skip(&r);
            const uint8_t *name = mp_bytes(&r, &size);
            die("the server refused message %llu of a batch: %.*s", (unsigned long long)index, (int)size, name);
        }
        die("the server took %llu of %u messages", (unsigned long long)count, batch);
    }
    answered += batch;
    last_event_ns = now;
    if (measuring) {
        in_messages += batch;
        measured_bytes += (uint64_t)batch * body_size;
        for (uint32_t i = 0; i < batch; i++) hist_add(&confirm, now - c->slot[id - FIRST_ID].sent_at);
    }
    c->free_slot[c->free_count++] = id - FIRST_ID;
}

/* The only consumer of a count takes no message more: it would be lost with the connection. */
static uint32_t further_credit(Connection *c, uint32_t wanted)
{
    if (consumers == 1 && count_limit && c->granted + wanted > count_limit) wanted = (uint32_t)(count_limit - c->granted);
    c->granted += wanted;
    return wanted;
}

static void take_delivery(Connection *c, Reader r, uint64_t now)
{
    if (mp_array(&r) != 2) die("malformed DELIVERY");
    uint64_t first = mp_uint(&r), count = mp_array(&r);
    for (uint64_t i = 0; i < count; i++) take_message(&r, now);
    if (acknowledge && count) acknowledge_range(c, first, first + count - 1);
    if (level) return;
    c->consumed += (uint32_t)count;
    if (c->consumed >= credit / 2 || credit == 1) {
        uint32_t more = further_credit(c, c->consumed);
        if (more) control(c, CREDIT, 0, SUBSCRIPTION_ID, more, -1);
        c->consumed = 0;
    }
}

static void take_frame(Connection *c, const uint8_t *frame, uint32_t length, uint64_t now)
{
    uint32_t id = get_big_endian32(frame + 5);
    Reader r = {frame + FRAME_HEAD, frame + 4 + length};
    switch (frame[4]) {
    case SENT:
        take_sent(c, id, r, now);
        break;
    case DELIVERY:
        take_delivery(c, r, now);
        break;
    case MESSAGE:
        take_message(&r, now);
        ask_for_one(c);
        break;
    case REPLY:
        break;
    case ERROR_FRAME:
    case ENDED:
        refused(r);
    default:
        die("unexpected frame type %02x", frame[4]);
    }
}

static void readable(Connection *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_have, c->in_capacity - c->in_have, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) die("the server closed the connection");
    uint64_t now = now_ns();
    c->in_have += (size_t)n;
    size_t at = 0;
    while (c->in_have - at >= FRAME_HEAD) {
        uint32_t length = get_big_endian32(c->in + at);
        if (length < 5) die("malformed frame");
        if (c->in_have - at < (size_t)length + 4) {
            if ((size_t)length + 4 > c->in_capacity) {
                c->in_capacity = (size_t)length + 4;
                c->in = need(realloc(c->in, c->in_capacity));
            }
            break;
        }
        take_frame(c, c->in + at, length, now);
        at += (size_t)length + 4;
    }
    memmove(c->in, c->in + at, c->in_have - at);
    c->in_have -= at;
    if (c->producer) pump(c);
    else flush_control(c);
}

/* A message may leave for each that came in. */
static void grant_level(void)
{
    static uint64_t granted;
    for (int i = 0; i < consumers && answered - granted >= (uint64_t)consumers; i++) {
        uint64_t more = (answered - granted) / (uint64_t)(consumers - i);
        control(&connections[i], CREDIT, 0, SUBSCRIPTION_ID, more, -1);
        flush_control(&connections[i]);
        granted += more;
    }
}

/* Deliveries may have released producers that wait for the lock step or the backlog. */
static void pump_producers(void)
{
    for (int i = 0; i < connection_count; i++)
        if (connections[i].producer) pump(&connections[i]);
}

static void turn(int wait_ms, int timer)
{
    struct epoll_event ready[64];
    int n = epoll_wait(poll_fd, ready, 64, wait_ms), released = 0;
    for (int i = 0; i < n; i++) {
        Connection *c = ready[i].data.ptr;
        if (!c) {
            uint64_t ticks;
            if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN) die("timer: %s", strerror(errno));
            pump_producers();
            continue;
        }
        if (ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
            readable(c);
            released |= !c->producer;
        }
        if (ready[i].events & EPOLLOUT) {
            if (c->producer) pump(c);
            else flush_control(c);
        }
    }
    if ((released && (lockstep || backlog)) || (lockstep && n)) pump_producers();
    if (level) grant_level();
}

static int all_done(void)
{
    return (!producers || answered == produced) && (!consumers || !producers || delivered >= produced);
}

static int reached_count(void)
{
    if (!count_limit) return 0;
    return (!producers || answered >= count_limit) && (!consumers || delivered >= count_limit);
}

static void report(double elapsed, uint64_t cpu)
{
    printf("{\"event\":\"result\",\"elapsed_s\":%.6f,\"generator_cpu_s\":%.6f,\"produced\":%llu,\"answered\":%llu,"
           "\"delivered\":%llu,\"out_of_order\":%llu,\"in_messages\":%llu,\"out_messages\":%llu,\"in_per_s\":%.1f,"
           "\"out_per_s\":%.1f,\"confirm_time\":",
           elapsed, (double)cpu / 1e6, (unsigned long long)produced, (unsigned long long)answered,
           (unsigned long long)delivered, (unsigned long long)out_of_order, (unsigned long long)in_messages,
           (unsigned long long)out_messages, elapsed > 0 ? (double)in_messages / elapsed : 0.0,
           elapsed > 0 ? (double)out_messages / elapsed : 0.0);
    hist_print_json(&confirm);
    printf(",\"end_to_end_time\":");
    hist_print_json(&end_to_end);
    printf("}\n");
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    double warmup = 0, seconds = 0, rate = 0;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        int *flag = !strcmp(option, "--express") ? &express : !strcmp(option, "--acknowledge") ? &acknowledge
                  : !strcmp(option, "--receive") ? &use_receive : !strcmp(option, "--lockstep") ? &lockstep
                  : !strcmp(option, "--level") ? &level : NULL;
        if (flag) {
            *flag = 1;
            continue;
        }
        if (++i == argc) die("%s wants a value", option);
        if (!strcmp(option, "--socket")) path = argv[i];
        else if (!strcmp(option, "--queue")) queue_name = argv[i];
        else if (!strcmp(option, "--produce")) producers = atoi(argv[i]);
        else if (!strcmp(option, "--consume")) consumers = atoi(argv[i]);
        else if (!strcmp(option, "--body")) body_size = (uint32_t)atoi(argv[i]);
        else if (!strcmp(option, "--batch")) batch = (uint32_t)atoi(argv[i]);
        else if (!strcmp(option, "--window")) window = (uint32_t)atoi(argv[i]);
        else if (!strcmp(option, "--credit")) credit = (uint32_t)atoi(argv[i]);
        else if (!strcmp(option, "--backlog")) backlog = strtoull(argv[i], NULL, 10);
        else if (!strcmp(option, "--rate")) rate = atof(argv[i]);
        else if (!strcmp(option, "--warmup")) warmup = atof(argv[i]);
        else if (!strcmp(option, "--seconds")) seconds = atof(argv[i]);
        else if (!strcmp(option, "--count")) count_limit = strtoull(argv[i], NULL, 10);
        else if (!strcmp(option, "--max-bytes")) max_bytes = strtoull(argv[i], NULL, 10);
        else die("unknown option %s", option);
    }
    if (!path || !queue_name || producers + consumers < 1 || producers + consumers > MAX_CONNECTIONS || !batch
        || (seconds <= 0 && !count_limit)) die("--socket, --queue, --produce or --consume, and --seconds or --count are needed");
    if (lockstep) window = batch = 1;
    body_offset = need(calloc(batch, sizeof *body_offset));
    poll_fd = epoll_create1(0);
    for (; connection_count < producers + consumers; connection_count++) {
        connections[connection_count].index = connection_count;
        open_connection(&connections[connection_count], path, connection_count >= consumers);
    }

    int timer = -1;
    if (rate > 0 && producers) {
        interval = (uint64_t)(1e9 * batch * producers / rate);
        timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        struct itimerspec every = {{0, 200000}, {0, 200000}};
        struct epoll_event add = {.events = EPOLLIN, .data.ptr = NULL};
        timerfd_settime(timer, 0, &every, NULL);
        epoll_ctl(poll_fd, EPOLL_CTL_ADD, timer, &add);
    }

    uint64_t begin = now_ns(), cpu = 0, start = 0;
    uint64_t start_at = begin + (uint64_t)(warmup * 1e9);
    if (!warmup) {
        event("start");
        measuring = 1;
        start = now_ns();
        cpu = cpu_us();
    }
    for (int i = 0; i < consumers; i++) {
        if (use_receive) ask_for_one(&connections[i]);
        else control(&connections[i], SUBSCRIBE, SUBSCRIPTION_ID, connections[i].handle,
                     level ? 0 : further_credit(&connections[i], credit), acknowledge);
        flush_control(&connections[i]);
    }
    sending = 1;
    for (int i = 0; i < connection_count; i++) connections[i].due = begin;
    pump_producers();
    for (;;) {
        uint64_t now = now_ns();
        if (!measuring && now >= start_at) {
            event("start");
            measuring = 1;
            start = now = now_ns();
            cpu = cpu_us();
        }
        if (measuring && seconds > 0 && now - start >= (uint64_t)(seconds * 1e9)) break;
        if (measuring && max_bytes && measured_bytes >= max_bytes) break;
        if (reached_count()) break;
        turn(20, timer);
    }
    uint64_t stop = reached_count() && last_event_ns > start ? last_event_ns : now_ns();
    measuring = 0;
    cpu = cpu_us() - cpu;
    event("stop");
    sending = 0;
    uint64_t limit = now_ns() + 60000000000u;
    while (!all_done() && now_ns() < limit) turn(20, timer);
    report((double)(stop - start) / 1e9, cpu);
    return all_done() ? 0 : 2;
}
