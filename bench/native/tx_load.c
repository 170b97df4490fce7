/* Transactions over the application protocol (docs/reference/application-protocol.md 7), all clients in one thread.
 *
 * Usage: tx_load --socket PATH --queue NAME [--clients N] [--size N] [--explicit] [--body BYTES] [--warmup S] --seconds S
 *        tx_load … --send-only [--count N]
 *
 * Every client has one sending and one receiving transaction under way. With --size 1 they are transactions of one message: SEND
 * with the flag SINGLE, and RECEIVE. Otherwise, or with --explicit, BEGIN, SEND, COMMIT in one write, and BEGIN, SUBSCRIBE with as
 * much credit, COMMIT when all have come. A transaction counts when its reply says that it is durable. The queue is created.
 * With --send-only nothing is received, and the queue exists or is that of another queue manager; --count ends the run when so many
 * messages, or a few more, were sent.
 *
 * Prints {"event":"start"}, {"event":"stop"} and the result, one JSON object a line. */
#include "app.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    CREATE_QUEUE = 0x10, BEGIN = 0x60, COMMIT = 0x61,
    SINGLE = 4,
    SEND_ID = 16, SEND_BEGIN, SEND_COMMIT, RECEIVE_ONE, RECEIVE_BEGIN, RECEIVE_SUBSCRIBE, RECEIVE_COMMIT,
    MAX_CLIENTS = 1024,
};

typedef struct {
    int fd, want_write;
    uint32_t handle, received;
    uint8_t *in;
    size_t in_have, in_capacity;
    Buffer out, sends;          /* `sends`: what a sending transaction writes */
    size_t out_done;
    uint64_t sent_at, received_at;
} Client;

static const char *queue_name;
static uint32_t size_of = 1, body_size = 1024;
static int explicit_, send_only, client_count = 1, poll_fd, measuring;
static Client clients[MAX_CLIENTS];
static uint64_t sent, received, sent_messages, received_messages;
static uint64_t count_limit, begun, confirmed;      /* messages, whether measured or not */
static Histogram send_time, receive_time;

static void expect_reply(Client *c, Buffer *b)
{
    int kind = frame_ask(c->fd, b);
    if (kind != REPLY) die("the server answers with frame type %02x", kind);
}

static void numbered(Buffer *b, int type, uint32_t id, uint32_t value)
{
    size_t at = frame_begin(b, type, id);
    mp_put_array(b, 1);
    mp_put_uint(b, value);
    frame_end(b, at);
}

static void prepare(Client *c)
{
    Buffer *b = &c->sends;
    if (explicit_) numbered(b, BEGIN, SEND_BEGIN, 1);
    size_t at = frame_begin(b, SEND, SEND_ID);
    mp_put_array(b, explicit_ ? 4 : 3);
    mp_put_uint(b, c->handle);
    mp_put_uint(b, explicit_ ? 0 : SINGLE);
    mp_put_array(b, size_of);
    for (uint32_t i = 0; i < size_of; i++) {
        mp_put_array(b, 1);
        size_t body = mp_put_bin(b, body_size);
        memset(b->data + body, (int)i, body_size);
    }
    if (explicit_) mp_put_uint(b, 1);
    frame_end(b, at);
    if (explicit_) numbered(b, COMMIT, SEND_COMMIT, 1);
}

static void open_client(Client *c, const char *path, int create)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) die("socket path too long");
    strcpy(address.sun_path, path);
    c->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) die("%s: %s", path, strerror(errno));
    Buffer b = {0};
    frame_begin(&b, HELLO, 1);
    *buffer_extend(&b, 1) = 0x81;
    mp_put_text(&b, "version");
    mp_put_uint(&b, 1);
    expect_reply(c, &b);
    if (create) {
        b.size = 0;
        frame_begin(&b, CREATE_QUEUE, 2);
        mp_put_array(&b, 2);
        mp_put_text(&b, queue_name);
        *buffer_extend(&b, 1) = 0x81;
        mp_put_text(&b, "transactional");
        *buffer_extend(&b, 1) = 0xC3;
        expect_reply(c, &b);
    }
    b.size = 0;
    frame_begin(&b, OPEN, 3);
    mp_put_array(&b, 2);
    mp_put_text(&b, queue_name);
    mp_put_uint(&b, send_only ? 2 : 3);
    expect_reply(c, &b);
    Reader r = {b.data, b.data + b.size};
    if (mp_array(&r) < 1) die("malformed reply to OPEN");
    c->handle = (uint32_t)mp_uint(&r);
    free(b.data);
    c->in_capacity = 256 * 1024;
    c->in = need(malloc(c->in_capacity));
    prepare(c);
    set_nonblocking(c->fd);
    struct epoll_event add = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &add)) die("epoll_ctl: %s", strerror(errno));
}

static void interest(Client *c, int write)
{
    if (c->want_write == write) return;
    struct epoll_event change = {.events = EPOLLIN | (write ? EPOLLOUT : 0u), .data.ptr = c};
    epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->fd, &change);
    c->want_write = write;
}

static void flush(Client *c)
{
    while (c->out_done < c->out.size) {
        ssize_t n = send(c->fd, c->out.data + c->out_done, c->out.size - c->out_done, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR) die("send: %s", strerror(errno));
            interest(c, 1);
            return;
        }
        c->out_done += (size_t)n;
    }
    c->out.size = c->out_done = 0;
    interest(c, 0);
}

static void next_send(Client *c, uint64_t now)
{
    c->sent_at = now;
    begun += size_of;
    memcpy(buffer_extend(&c->out, c->sends.size), c->sends.data, c->sends.size);
}

static void next_receive(Client *c, uint64_t now)
{
    Buffer *b = &c->out;
    c->received_at = now;
    c->received = 0;
    if (explicit_) numbered(b, BEGIN, RECEIVE_BEGIN, 2);
    size_t at = frame_begin(b, explicit_ ? SUBSCRIBE : RECEIVE, explicit_ ? RECEIVE_SUBSCRIBE : RECEIVE_ONE);
    mp_put_array(b, explicit_ ? 4 : 3);
    mp_put_uint(b, c->handle);
    if (explicit_) mp_put_uint(b, size_of);
    else *buffer_extend(b, 1) = 0xC0;
    *buffer_extend(b, 1) = 0xC2;
    if (explicit_) mp_put_uint(b, 2);
    frame_end(b, at);
}

static void take_frame(Client *c, const uint8_t *frame, size_t length, uint64_t now)
{
    uint32_t id = get_big_endian32(frame + 5);
    Reader r = {frame + FRAME_HEAD, frame + 4 + length};
    switch (frame[4]) {
    case ERROR_FRAME:
        die("the server refuses request %u", id);
    case DELIVERY:
        if (mp_array(&r) != 2) die("malformed DELIVERY");
        mp_uint(&r);
        c->received += (uint32_t)mp_array(&r);
        if (c->received == size_of) numbered(&c->out, COMMIT, RECEIVE_COMMIT, 2);
        return;
    case SENT:
        if (mp_array(&r) < 2 || mp_uint(&r) != size_of) die("messages were refused");
        if (explicit_) return;
        break;
    case MESSAGE:
        break;
    case REPLY:
        if (id != SEND_COMMIT && id != RECEIVE_COMMIT) return;
        break;
    default:
        return;
    }
    if (id == SEND_ID || id == SEND_COMMIT) {
        confirmed += size_of;
        if (measuring) {
            sent++;
            sent_messages += size_of;
            hist_add(&send_time, now - c->sent_at);
        }
        if (!count_limit || begun < count_limit) next_send(c, now);
    } else {
        if (measuring) {
            received++;
            received_messages += size_of;
            hist_add(&receive_time, now - c->received_at);
        }
        next_receive(c, now);
    }
}

static void readable(Client *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_have, c->in_capacity - c->in_have, 0);
    if (n == 0) die("the server closed the connection");
    if (n < 0) {
        if (errno == EAGAIN || errno == EINTR) return;
        die("recv: %s", strerror(errno));
    }
    c->in_have += (size_t)n;
    size_t at = 0;
    uint64_t now = now_ns();
    while (c->in_have - at >= FRAME_HEAD) {
        size_t length = get_big_endian32(c->in + at);
        if (length + 4 > c->in_capacity) {
            c->in_capacity = length + 4;
            c->in = need(realloc(c->in, c->in_capacity));
        }
        if (c->in_have - at < length + 4) break;
        take_frame(c, c->in + at, length, now);
        at += length + 4;
    }
    memmove(c->in, c->in + at, c->in_have - at);
    c->in_have -= at;
    flush(c);
}

static void turn(int wait_ms)
{
    struct epoll_event ready[64];
    int n = epoll_wait(poll_fd, ready, 64, wait_ms);
    for (int i = 0; i < n; i++) {
        Client *c = ready[i].data.ptr;
        if (ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) readable(c);
        if (ready[i].events & EPOLLOUT) flush(c);
    }
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    double warmup = 0, seconds = 0;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (!strcmp(option, "--explicit")) {
            explicit_ = 1;
            continue;
        }
        if (!strcmp(option, "--send-only")) {
            send_only = 1;
            continue;
        }
        if (++i == argc) die("%s wants a value", option);
        if (!strcmp(option, "--socket")) path = argv[i];
        else if (!strcmp(option, "--queue")) queue_name = argv[i];
        else if (!strcmp(option, "--clients")) client_count = atoi(argv[i]);
        else if (!strcmp(option, "--size")) size_of = (uint32_t)atoi(argv[i]);
        else if (!strcmp(option, "--body")) body_size = (uint32_t)atoi(argv[i]);
        else if (!strcmp(option, "--warmup")) warmup = atof(argv[i]);
        else if (!strcmp(option, "--seconds")) seconds = atof(argv[i]);
        else if (!strcmp(option, "--count")) count_limit = strtoull(argv[i], NULL, 10);
        else die("unknown option %s", option);
    }
    if (!path || !queue_name || client_count < 1 || client_count > MAX_CLIENTS || !size_of || (seconds <= 0) == !count_limit)
        die("--socket, --queue and either --seconds or --count are needed");
    if (count_limit && !send_only) die("--count is for --send-only");
    explicit_ |= size_of > 1;
    poll_fd = epoll_create1(0);
    for (int i = 0; i < client_count; i++) open_client(&clients[i], path, !i && !send_only);
    uint64_t begin = now_ns(), start = 0, cpu = 0;
    for (int i = 0; i < client_count; i++) {
        if (!send_only) next_receive(&clients[i], begin);
        if (!count_limit || begun < count_limit) next_send(&clients[i], begin);
        flush(&clients[i]);
    }
    for (;;) {
        uint64_t now = now_ns();
        if (!measuring && now - begin >= (uint64_t)(warmup * 1e9)) {
            event("start");
            measuring = 1;
            start = now = now_ns();
            cpu = cpu_us();
        }
        if (count_limit ? confirmed >= count_limit : measuring && now - start >= (uint64_t)(seconds * 1e9)) break;
        turn(20);
    }
    double elapsed = (double)(now_ns() - start) / 1e9;
    cpu = cpu_us() - cpu;
    event("stop");
    printf("{\"event\":\"result\",\"elapsed_s\":%.6f,\"generator_cpu_s\":%.6f,\"sent_per_s\":%.1f,\"received_per_s\":%.1f,"
           "\"in_per_s\":%.1f,\"out_per_s\":%.1f,\"send_time\":",
           elapsed, (double)cpu / 1e6, (double)sent / elapsed, (double)received / elapsed, (double)sent_messages / elapsed,
           (double)received_messages / elapsed);
    hist_print_json(&send_time);
    printf(",\"receive_time\":");
    hist_print_json(&receive_time);
    printf("}\n");
    return 0;
}
