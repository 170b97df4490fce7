/* A null sink for app_load: answers every SEND at once and hands the messages to one consumer; keeps nothing on disk.
 *
 * Usage: app_sink PATH        (a Unix socket; prints `ready`)
 * Without a consumer messages are thrown away. Credit is not enforced. It shows how fast the generator is. */
#include "app.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { READ_SIZE = 256 * 1024 };

typedef struct {
    int fd, want_write;
    Buffer in, out;
    size_t out_done;
} Peer;

static int poll_fd;
static Peer *consumer;              /* the connection that opened the queue to receive */
static uint32_t subscription, receive_id;
static uint64_t tag = 1, lookup_id = 1;
static int streaming, waiting;      /* a subscription; a RECEIVE without its message */
static Buffer held;                 /* bodies, each after its u32 size, that wait for the consumer to ask */
static size_t held_from;

static void drop(Peer *peer)
{
    if (consumer == peer) consumer = NULL, streaming = waiting = 0;
    close(peer->fd);
    free(peer->in.data);
    free(peer->out.data);
    free(peer);
}

static int flush(Peer *peer)
{
    while (peer->out_done < peer->out.size) {
        ssize_t n = send(peer->fd, peer->out.data + peer->out_done, peer->out.size - peer->out_done, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return -1;
        if (n < 0) break;
        peer->out_done += (size_t)n;
    }
    int write = peer->out_done < peer->out.size;
    if (!write) peer->out.size = peer->out_done = 0;
    if (write != peer->want_write) {
        struct epoll_event change = {.events = EPOLLIN | (write ? EPOLLOUT : 0u), .data.ptr = peer};
        epoll_ctl(poll_fd, EPOLL_CTL_MOD, peer->fd, &change);
        peer->want_write = write;
    }
    return 0;
}

/* The first fields of the message array of section 5.1; a client ignores that the rest is missing. */
static void put_message(Buffer *b, const uint8_t *body, size_t size)
{
    mp_put_array(b, 2);
    mp_put_uint(b, lookup_id++);
    size_t at = mp_put_bin(b, size);
    memcpy(b->data + at, body, size);
}

static void serve_held(void)
{
    while ((waiting || streaming) && held_from < held.size) {
        uint32_t size = get32(held.data + held_from);
        size_t at = frame_begin(&consumer->out, waiting ? MESSAGE : DELIVERY, waiting ? receive_id : subscription);
        if (!waiting) {
            mp_put_array(&consumer->out, 2);
            mp_put_uint(&consumer->out, tag++);
            mp_put_array(&consumer->out, 1);
        }
        put_message(&consumer->out, held.data + held_from + 4, size);
        frame_end(&consumer->out, at);
        waiting = 0;
        held_from += 4 + size;
    }
    if (held_from == held.size) held.size = held_from = 0;
}

static void take_send(Peer *peer, uint32_t id, Reader r)
{
    mp_array(&r);
    mp_uint(&r);
    mp_uint(&r);
    uint64_t count = mp_array(&r), size;
    size_t at = 0;
    if (streaming) {
        at = frame_begin(&consumer->out, DELIVERY, subscription);
        mp_put_array(&consumer->out, 2);
        mp_put_uint(&consumer->out, tag);
        mp_put_array(&consumer->out, (uint32_t)count);
        tag += count;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t fields = mp_array(&r);
        const uint8_t *body = mp_bytes(&r, &size);
        for (fields--; fields; fields--) mp_skip(&r);
        if (streaming) {
            put_message(&consumer->out, body, size);
        } else if (consumer) {
            uint8_t *p = buffer_extend(&held, size + 4);
            put32(p, (uint32_t)size);
            memcpy(p + 4, body, size);
        }
    }
    if (streaming) frame_end(&consumer->out, at);
    at = frame_begin(&peer->out, SENT, id);
    mp_put_array(&peer->out, 2);
    mp_put_uint(&peer->out, count);
    mp_put_array(&peer->out, 0);
    frame_end(&peer->out, at);
}

static void take_open(Peer *peer, uint32_t id, Reader r)
{
    mp_array(&r);
    mp_skip(&r);
    if (mp_uint(&r) == 1) consumer = peer;
    size_t at = frame_begin(&peer->out, REPLY, id);
    mp_put_array(&peer->out, 1);
    mp_put_uint(&peer->out, 7);
    frame_end(&peer->out, at);
}

static void take_frame(Peer *peer, const uint8_t *frame, uint32_t length)
{
    uint32_t id = get_big_endian32(frame + 5);
    Reader payload = {frame + FRAME_HEAD, frame + 4 + length};
    int type = frame[4];
    if (type == SEND) {
        take_send(peer, id, payload);
    } else if (type == OPEN) {
        take_open(peer, id, payload);
    } else if (type == RECEIVE) {
        receive_id = id;
        waiting = 1;
    } else if (id) {
        if (type == SUBSCRIBE) {
            subscription = id;
            streaming = 1;
        }
        size_t at = frame_begin(&peer->out, REPLY, id);
        *buffer_extend(&peer->out, 1) = 0xc0;
        frame_end(&peer->out, at);
    }
    serve_held();
}

static int readable(Peer *peer)
{
    uint8_t *room = buffer_extend(&peer->in, READ_SIZE);
    ssize_t n = recv(peer->fd, room, READ_SIZE, 0);
    peer->in.size -= READ_SIZE - (n > 0 ? (size_t)n : 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0) return -1;
    size_t at = 0;
    while (peer->in.size - at >= FRAME_HEAD) {
        uint32_t length = get_big_endian32(peer->in.data + at);
        if (peer->in.size - at < (size_t)length + 4) break;
        take_frame(peer, peer->in.data + at, length);
        at += (size_t)length + 4;
    }
    memmove(peer->in.data, peer->in.data + at, peer->in.size - at);
    peer->in.size -= at;
    if (consumer && consumer != peer && flush(consumer)) return -1;
    return flush(peer);
}

int main(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path) die("usage: app_sink PATH");
    strcpy(address.sun_path, argv[1]);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 256)) die("listen: %s", strerror(errno));
    poll_fd = epoll_create1(0);
    struct epoll_event add = {.events = EPOLLIN, .data.ptr = NULL}, ready[64];
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &add);
    puts("ready");
    fflush(stdout);
    for (;;) {
        int n = epoll_wait(poll_fd, ready, 64, -1);
        for (int i = 0; i < n; i++) {
            Peer *peer = ready[i].data.ptr;
            if (peer) {
                int failed = ready[i].events & EPOLLOUT ? flush(peer) : 0;
                if (!failed && ready[i].events & ~(uint32_t)EPOLLOUT) failed = readable(peer);
                if (failed) drop(peer);
                continue;
            }
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
            if (fd < 0) continue;
            peer = need(calloc(1, sizeof *peer));
            peer->fd = fd;
            add.data.ptr = peer;
            epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &add);
        }
    }
}
