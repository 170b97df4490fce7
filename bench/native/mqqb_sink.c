/* A null sink: accepts MS-MQQB sessions, acknowledges everything at once and keeps nothing.
 *
 * Usage: mqqb_sink PORT        (0 takes a free port; prints `ready PORT`)
 * It shows how fast the generator is when nothing behind the socket costs time. */
#include "mqqb.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { WINDOW = 64, BUFFER = 256 * 1024 };

typedef struct {
    int fd;
    uint8_t *buffer;
    size_t have, skip;          /* bytes buffered; bytes of the current user message still to be thrown away */
    int current_recoverable;
    uint16_t received, recoverable, base;
    unsigned unacked, recoverable_unacked;
} Peer;

static void drop(Peer *peer)
{
    close(peer->fd);
    free(peer->buffer);
    free(peer);
}

static int reply(Peer *peer, const uint8_t *data, size_t size)
{
    return send(peer->fd, data, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -1;
}

static int acknowledge(Peer *peer)
{
    uint8_t ack[ACK_SIZE];
    uint32_t bits = peer->recoverable_unacked >= 32 ? 0xFFFFFFFFu : (1u << peer->recoverable_unacked) - 1;
    put_ack(ack, peer->received, peer->recoverable_unacked ? (uint16_t)(peer->base + 1) : 0, bits, WINDOW);
    peer->base = peer->recoverable;
    peer->unacked = peer->recoverable_unacked = 0;
    return reply(peer, ack, ACK_SIZE);
}

static int internal(Peer *peer, uint8_t *packet, uint32_t size)
{
    int type = get16(packet + 18) & 15;
    if (type == PACKET_TYPE_EC && size == EC_SIZE) {
        memset(packet + 36, 0x77, 16);
        return reply(peer, packet, EC_SIZE);
    }
    if (type == PACKET_TYPE_CP && size == CP_SIZE) {
        put16(packet + 30, WINDOW);
        return reply(peer, packet, CP_SIZE);
    }
    return type == PACKET_TYPE_ACK ? 0 : -1;
}

/* A user message has been read to its end. */
static int count(Peer *peer)
{
    peer->received++;
    peer->unacked++;
    if (peer->current_recoverable) {
        peer->recoverable++;
        peer->recoverable_unacked++;
    }
    return peer->unacked >= WINDOW / 2 ? acknowledge(peer) : 0;
}

/* Consumes what the buffer holds; 0, or -1 when the session is to be closed. */
static int consume(Peer *peer)
{
    size_t at = 0;
    for (;;) {
        size_t left = peer->have - at;
        if (peer->skip) {
            size_t n = peer->skip < left ? peer->skip : left;
            peer->skip -= n;
            at += n;
            if (peer->skip) break;
            if (count(peer)) return -1;
            continue;
        }
        if (left < BASE_SIZE) break;
        uint8_t *packet = peer->buffer + at;
        uint32_t size = packet_size(packet);
        if (!size) return -1;
        if (get16(packet + 2) & BASE_FLAG_INTERNAL) {
            if (size > EC_SIZE) return -1;
            if (left < size) break;
            if (internal(peer, packet, size)) return -1;
            at += size;
            continue;
        }
        if (left < USER_FIXED_END) break;
        peer->current_recoverable = packet_recoverable(packet);
        peer->skip = size;
    }
    memmove(peer->buffer, peer->buffer + at, peer->have - at);
    peer->have -= at;
    return 0;
}

static int readable(Peer *peer)
{
    ssize_t n = recv(peer->fd, peer->buffer + peer->have, BUFFER - peer->have, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0) return -1;
    peer->have += (size_t)n;
    if (consume(peer)) return -1;
    return peer->unacked ? acknowledge(peer) : 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) die("usage: mqqb_sink PORT");
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 256)
        || getsockname(listener, (struct sockaddr *)&address, &length)) die("listen: %s", strerror(errno));
    set_nonblocking(listener);
    int poll = epoll_create1(0);
    struct epoll_event add = {.events = EPOLLIN, .data.ptr = NULL}, ready[64];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &add);
    printf("ready %d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int n = epoll_wait(poll, ready, 64, -1);
        for (int i = 0; i < n; i++) {
            Peer *peer = ready[i].data.ptr;
            if (peer) {
                if (readable(peer)) drop(peer);
                continue;
            }
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            peer = need(calloc(1, sizeof *peer));
            peer->fd = fd;
            peer->buffer = need(malloc(BUFFER));
            add.data.ptr = peer;
            epoll_ctl(poll, EPOLL_CTL_ADD, fd, &add);
        }
    }
}
