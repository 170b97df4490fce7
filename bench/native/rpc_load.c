/* Remote readers: two-phase destructive reads over RemoteRead (MS-MQRR), all in one thread.
 *
 * Usage: rpc_load --connect HOST:PORT --pdus FILE --count N [--clients N] [--warmup N] [--body BYTES]
 *
 * FILE holds four PDUs, one after the other: bind, and the requests R_OpenQueue, R_StartReceive and R_EndReceive in NDR
 * 2.0 on presentation context 0, unauthenticated, with a NULL context handle where the open queue belongs: at the
 * beginning of the stub, as in the answer to R_OpenQueue. Each client has one connection and one read under way: it starts
 * a receive that does not wait, takes all fragments of the answer, ends it with RR_ACK, waits for the answer, and starts
 * the next. Its time runs from the start to the answer to the end. The run ends after N reads, or when the queue is empty.
 *
 * Prints {"event":"start"} after the warm-up, {"event":"stop"} and the result, one JSON object a line. */
#include "common.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
    BIND, OPEN, START, END, KINDS,
    BIND_ACK = 12, RESPONSE = 2, FAULT = 3,
    HEADER = 24, HANDLE = 20, LAST_FRAGMENT = 2,
    MAX_CLIENTS = 256, READ_SIZE = 1 << 20,
};

typedef struct {
    int fd, phase;
    uint32_t call_id;
    uint8_t *in;
    size_t have;
    uint8_t tail[4];                /* the last bytes of the stub: the HRESULT */
    size_t stub;                    /* bytes of the answer so far */
    uint8_t *request[KINDS];
    uint64_t started;
    int done;
} Client;

static uint8_t *pdu[KINDS];
static uint16_t pdu_size[KINDS];
static Client clients[MAX_CLIENTS];
static int client_count = 1, running, measuring, empty;
static uint64_t count_limit, warmup, reads, measured, measured_bytes, begun_ns, stopped_ns;
static uint32_t body_size;
static Histogram read_time;

static void load_pdus(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) die("%s: %s", path, strerror(errno));
    for (int kind = 0; kind < KINDS; kind++) {
        uint8_t head[16];
        if (fread(head, 1, sizeof head, file) != sizeof head) die("%s: too short", path);
        pdu_size[kind] = get16(head + 8);
        pdu[kind] = need(malloc(pdu_size[kind]));
        memcpy(pdu[kind], head, sizeof head);
        if (fread(pdu[kind] + 16, 1, pdu_size[kind] - 16u, file) != pdu_size[kind] - 16u) die("%s: too short", path);
    }
    fclose(file);
}

static void put(Client *c, int kind)
{
    c->phase = kind;
    c->stub = 0;
    put32(c->request[kind] + 12, ++c->call_id);
    for (size_t done = 0; done < pdu_size[kind];) {
        ssize_t n = send(c->fd, c->request[kind] + done, pdu_size[kind] - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) die("send: %s", strerror(errno));       /* small requests, one at a time: the socket has room */
        done += (size_t)n;
    }
}

static void start_read(Client *c)
{
    if (empty || reads + (uint64_t)running > count_limit + (uint64_t)client_count - 1) {
        c->done = 1;
        running--;
        return;
    }
    c->started = now_ns();
    put(c, START);
}

static void answered(Client *c)
{
    uint32_t result = get32(c->tail);
    switch (c->phase) {
    case OPEN:
        start_read(c);
        return;
    case START:
        if (result == 0xC00E001B) {
            empty = 1;
            c->done = 1;
            running--;
            return;
        }
        if (result) die("R_StartReceive: %08X", result);
        if (body_size && c->stub < body_size) die("a message of %zu bytes", c->stub);
        if (measuring) measured_bytes += body_size;
        put(c, END);
        return;
    default:
        if (result) die("R_EndReceive: %08X", result);
        reads++;
        if (measuring) {
            measured++;
            hist_add(&read_time, now_ns() - c->started);
            stopped_ns = now_ns();
        } else if (reads >= warmup) {
            event("start");
            measuring = 1;
            begun_ns = now_ns();
        }
        start_read(c);
    }
}

static void take(Client *c, const uint8_t *p, size_t size)
{
    if (p[2] == BIND_ACK) {
        put(c, OPEN);
        return;
    }
    if (p[2] == FAULT) die("fault %08X in answer to request %d", get32(p + 24), c->phase);
    if (p[2] != RESPONSE || size < HEADER) die("a PDU of type %d", p[2]);
    size_t stub = size - HEADER;
    if (c->phase == OPEN && stub >= HANDLE) {
        memcpy(c->request[START] + HEADER, p + HEADER, HANDLE);
        memcpy(c->request[END] + HEADER, p + HEADER, HANDLE);
    }
    c->stub += stub;
    if (stub >= 4) {
        memcpy(c->tail, p + size - 4, 4);
    } else if (stub) {
        memmove(c->tail, c->tail + stub, 4 - stub);
        memcpy(c->tail + 4 - stub, p + HEADER, stub);
    }
    if (p[3] & LAST_FRAGMENT) answered(c);
}

static void readable(Client *c)
{
    ssize_t n = recv(c->fd, c->in + c->have, READ_SIZE - c->have, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) die("the server closed the connection");
    c->have += (size_t)n;
    size_t at = 0;
    while (c->have - at >= 16) {
        uint16_t size = get16(c->in + at + 8);
        if (size < 16) die("a PDU of %u bytes", size);
        if (c->have - at < size) break;
        take(c, c->in + at, size);
        at += size;
    }
    memmove(c->in, c->in + at, c->have - at);
    c->have -= at;
}

static void dial(Client *c, const struct sockaddr_in *address)
{
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (const struct sockaddr *)address, sizeof *address)) die("connect: %s", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->in = need(malloc(READ_SIZE));
    for (int kind = 0; kind < KINDS; kind++) {
        c->request[kind] = need(malloc(pdu_size[kind]));
        memcpy(c->request[kind], pdu[kind], pdu_size[kind]);
    }
    put(c, BIND);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *file = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (!strcmp(name, "--connect")) {
            char host[64];
            int port;
            if (sscanf(value, "%63[^:]:%d", host, &port) != 2 || !inet_aton(host, &address.sin_addr)) die("--connect HOST:PORT");
            address.sin_port = htons((uint16_t)port);
        } else if (!strcmp(name, "--pdus")) file = value;
        else if (!strcmp(name, "--count")) count_limit = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--clients")) client_count = atoi(value);
        else if (!strcmp(name, "--warmup")) warmup = strtoull(value, NULL, 10);
        else if (!strcmp(name, "--body")) body_size = (uint32_t)strtoul(value, NULL, 10);
        else die("unknown option %s", name);
    }
    if (!file || !address.sin_port || !count_limit || client_count < 1 || client_count > MAX_CLIENTS) die("see the head of rpc_load.c");
    load_pdus(file);
    int poll_fd = epoll_create1(0);
    running = client_count;
    for (int i = 0; i < client_count; i++) {
        dial(&clients[i], &address);
        struct epoll_event add = {.events = EPOLLIN, .data.ptr = &clients[i]};
        if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, clients[i].fd, &add)) die("epoll_ctl: %s", strerror(errno));
    }
    while (running) {
        struct epoll_event events[64];
        int n = epoll_wait(poll_fd, events, 64, 30000);
        if (n == 0) die("no answer for 30 s");
        for (int i = 0; i < n; i++) readable(events[i].data.ptr);
    }
    event("stop");
    double elapsed = (double)(stopped_ns - begun_ns) / 1e9;
    printf("{\"event\":\"result\",\"reads\":%llu,\"measured\":%llu,\"elapsed_s\":%.6f,\"per_s\":%.3f,\"mb_per_s\":%.3f,"
           "\"generator_cpu_s\":%.3f,\"read_time\":",
           (unsigned long long)reads, (unsigned long long)measured, elapsed, (double)measured / elapsed,
           (double)measured_bytes / elapsed / 1e6, (double)cpu_us() / 1e6);
    hist_print_json(&read_time);
    printf("}\n");
    return 0;
}
