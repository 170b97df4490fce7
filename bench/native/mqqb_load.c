/* A sending MS-MQQB peer: many sessions, packets prepared ahead, time from send to the durable acknowledgment.
 *
 * Usage: mqqb_load --connect HOST:PORT [--warmup S] [--seconds S] [--count N] [--max-bytes N] [--receipt-window]
 *                  --group sessions=8,window=64,rate=0,packet=FILE[+FILE…] [--group …]
 *
 * A packet FILE holds one UserMessage packet; session i of a group sends the (i mod files)th. Per message only
 * SourceQueueManager (one GUID a session), MessageID and SentTime are patched. Express messages are done when
 * AckSequenceNumber counts them, recoverable ones when RecoverableMsgAckSeqNumber + Flags name them (MS-MQQB 3.1.5.5).
 * The window counts messages that are not done; with --receipt-window it counts those not covered by
 * AckSequenceNumber, as the protocol has it. `rate` (messages a second and session) sends on a schedule, and the
 * time counts from the moment the message was due. A run ends when all is done, but does not wait for express
 * messages below half a window: they may stay unacknowledged until the peer's timer (AckTimeout / 2) runs out.
 * Transactional packets are one stream a session: their TransactionHeader is patched too, OrderAcks are read, and a run
 * ends when they cover everything.
 *
 * Prints one JSON object a line: {"event":"start"}, {"event":"stop"}, then the result. */
#include "mqqb.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>

enum {
    RING = 1 << 16,             /* send times and done marks, by sequence number */
    MAX_WINDOW = 1024,
    PREFIX = USER_FIXED_END,    /* what differs between the packets of a session */
    WHOLE_PACKET_LIMIT = 8192,  /* up to here every slot holds a whole packet, above it only the prefix */
    READ_BUFFER = 64 * 1024,
    MAX_IOV = 256,
    MAX_GROUPS = 8,
    MAX_FILES = 64,
    DRAIN_SECONDS = 20,
};

typedef struct {
    uint8_t *packet;
    uint32_t size;
    int recoverable;
    uint32_t transaction;       /* offset of the TransactionHeader, 0: there is none */
} Template;

typedef struct {
    int sessions;
    uint32_t window;
    double rate;
    int files;
    Template file[MAX_FILES];
    uint64_t done, done_bytes;  /* inside the measured time */
    uint64_t sent_total, done_total, acks, order_acks;
    Histogram latency;
} Group;

enum State { CONNECTING, WAIT_EC, WAIT_CP, OPEN };

typedef struct {
    int fd;
    enum State state;
    int want_write;
    Group *group;
    const Template *template;
    uint8_t guid[16];
    uint32_t slots, slot_size;
    uint8_t *slot;
    /* Sequence numbers of this session, never wrapped; the wire carries them modulo 2^16. */
    uint64_t queued;            /* messages patched into a slot */
    uint64_t written;           /* messages whole in the socket */
    uint64_t received;          /* covered by AckSequenceNumber */
    uint64_t done;              /* every message up to here is done */
    uint32_t offset;            /* bytes of message written+1 already in the socket */
    uint32_t message_id;
    uint64_t ordered;           /* covered by the last OrderAck */
    uint32_t stamp;             /* TxSequenceID.TimeStamp */
    uint16_t came;              /* messages from the peer */
    int owes;                   /* an acknowledgment of them */
    uint16_t peer_window;
    uint64_t due;               /* ns, next message of a paced session */
    uint64_t *sent_at;
    uint8_t *mark;
    uint8_t *in;
    uint32_t in_have;
} Session;

static Group groups[MAX_GROUPS];
static int group_count;
static Session *sessions;
static int session_count;
static int poll_fd;
static int receipt_window;
static int sending, measuring;
static uint64_t total_queued, count_limit, last_done_ns, measured_bytes;

static void pump(Session *s, uint64_t now);

static void interest(Session *s, int write)
{
    if (s->want_write == write) return;
    struct epoll_event change = {.events = EPOLLIN | (write ? EPOLLOUT : 0u), .data.ptr = s};
    epoll_ctl(poll_fd, EPOLL_CTL_MOD, s->fd, &change);
    s->want_write = write;
}

static void send_small(Session *s, const uint8_t *data, size_t size)
{
    if (send(s->fd, data, size, MSG_NOSIGNAL) != (ssize_t)size) die("handshake: %s", strerror(errno));
}

static void message_done(Session *s, uint64_t sequence, uint64_t now)
{
    uint32_t at = sequence & (RING - 1);
    if (s->mark[at]) return;
    s->mark[at] = 1;
    s->group->done_total++;
    last_done_ns = now;
    if (measuring) {
        s->group->done++;
        s->group->done_bytes += s->template->size;
        measured_bytes += s->template->size;
        hist_add(&s->group->latency, now - s->sent_at[at]);
    }
}

/* The sequence number nearest above `low` whose low 16 bits are `wire`; it must not exceed `high`. */
static uint64_t widen(uint64_t low, uint64_t high, uint16_t wire)
{
    uint64_t value = low + (uint16_t)(wire - (uint16_t)low);
    return value <= high ? value : UINT64_MAX;
}

static void session_header(Session *s, const uint8_t *h, uint64_t now)
{
    s->group->acks++;
    uint64_t received = widen(s->received, s->queued, get16(h));
    if (received == UINT64_MAX) die("AckSequenceNumber %u acknowledges a message that was never sent", get16(h));
    s->received = received;
    if (!s->template->recoverable) {
        while (s->done < received) message_done(s, ++s->done, now);
    } else {
        uint16_t wire_base = get16(h + 2);
        uint32_t bits = get32(h + 4);
        if (wire_base || bits) {
            uint64_t base;
            int16_t ahead = (int16_t)(wire_base - (uint16_t)s->done);
            if (ahead < 0 && (uint64_t)-ahead > s->done) die("RecoverableMsgAckSeqNumber %u is out of range", wire_base);
            base = s->done + (uint64_t)(int64_t)ahead;
            if (base > s->queued) die("RecoverableMsgAckSeqNumber %u names a message that was never sent", wire_base);
            for (uint64_t n = s->done + 1; n <= base; n++) message_done(s, n, now);
            for (int k = 0; k < 32; k++) {
                if (!(bits >> k & 1) || base + (unsigned)k <= s->done) continue;
                if (base + (unsigned)k > s->queued) die("RecoverableMsgAckFlags name a message that was never sent");
                message_done(s, base + (unsigned)k, now);
            }
            while (s->done < s->queued && s->mark[(s->done + 1) & (RING - 1)]) s->done++;
        }
    }
    uint16_t window = get16(h + 12);
    s->peer_window = window ? window : 1;
}

static void open_session(Session *s, const uint8_t *packet)
{
    s->peer_window = get16(packet + 30) ? get16(packet + 30) : 1;
    s->state = OPEN;
    s->due = now_ns();
}

static void internal_packet(Session *s, const uint8_t *packet, uint32_t size, uint64_t now)
{
    uint16_t flags = get16(packet + 18);
    int type = flags & 15;
    if (flags & REFUSED) die("the peer refused the session");
    if (type == PACKET_TYPE_ACK && size == ACK_SIZE && s->state == OPEN) {
        session_header(s, packet + 20, now);
    } else if (type == PACKET_TYPE_EC && size == EC_SIZE && s->state == WAIT_EC) {
        uint8_t cp[CP_SIZE];
        put_cp(cp, 500, 120000, (uint16_t)s->group->window);
        send_small(s, cp, CP_SIZE);
        s->state = WAIT_CP;
    } else if (type == PACKET_TYPE_CP && size == CP_SIZE && s->state == WAIT_CP) {
        open_session(s, packet);
    } else {
        die("unexpected packet of type %d and %u bytes", type, size);
    }
}

/* What the peer sends of its own: OrderAcks of our stream (MS-MQQB 2.2.4). */
static void user_packet(Session *s, const uint8_t *packet, uint32_t size)
{
    uint32_t at = behind_destination(packet, size), body;
    if (!s->template->transaction || !at || packet_recoverable(packet)) die("unexpected message from the peer");
    s->came++;
    s->owes = 1;
    body = at + 56 + 2u * packet[at + 1];
    if (get16(packet + at + 2) != CLASS_ORDER_ACK || body + ORDER_ACK_BODY > size) die("a message that is no OrderAck");
    /* It may come on any session that leads here: peers know a host by its address. */
    uint32_t ordinal = get32(packet + body);
    if (!ordinal || ordinal > (uint32_t)session_count) die("an OrderAck for a sequence that there is not");
    Session *stream = &sessions[ordinal - 1];
    if (get32(packet + body + 4) != stream->stamp) die("an OrderAck for another sequence");
    uint64_t number = get32(packet + body + 8);
    if (number > stream->written) die("an OrderAck for a message that was never sent");
    if (number > stream->ordered) stream->ordered = number;
    stream->group->order_acks++;
}

/* Acknowledges what came, between two messages. */
static void pay(Session *s)
{
    uint8_t ack[ACK_SIZE];
    if (!s->owes || s->offset) return;
    put_ack(ack, s->came, 0, 0, 64);
    put16(ack + 28, (uint16_t)s->written);
    put16(ack + 30, (uint16_t)(s->template->recoverable ? s->written : 0));
    send_small(s, ack, ACK_SIZE);
    s->owes = 0;
}

static void readable(Session *s)
{
    ssize_t n = recv(s->fd, s->in + s->in_have, READ_BUFFER - s->in_have, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n < 0) die("session closed: %s", strerror(errno));
    if (n == 0) die("the peer closed the session after %llu messages", (unsigned long long)s->received);
    uint64_t now = now_ns();
    s->in_have += (uint32_t)n;
    uint32_t at = 0;
    while (s->in_have - at >= BASE_SIZE) {
        uint32_t size = packet_size(s->in + at);
        int internal;
        if (!size || size > EC_SIZE) die("unexpected packet from the peer");
        internal = (get16(s->in + at + 2) & BASE_FLAG_INTERNAL) != 0;
        uint32_t whole = size + (!internal && get16(s->in + at + 2) & BASE_FLAG_SESSION ? 16 : 0);
        if (s->in_have - at < whole) break;
        if (internal) {
            internal_packet(s, s->in + at, size, now);
        } else {
            if (s->state != OPEN) die("a message before the session is open");
            user_packet(s, s->in + at, size);
            if (whole > size) session_header(s, s->in + at + size, now);
        }
        at += whole;
    }
    memmove(s->in, s->in + at, s->in_have - at);
    s->in_have -= at;
    if (s->state == OPEN) pump(s, now);
}

/* Patches as many messages as the window, the rate and the limits allow. */
static void fill(Session *s, uint64_t now)
{
    uint32_t window = s->group->window;
    while (sending && s->queued - s->done < RING - 1) {
        if (s->queued - s->received >= (window < s->peer_window ? window : s->peer_window)) break;
        if (!receipt_window && s->queued - s->done >= window) break;
        if (s->queued - s->written >= s->slots) break;
        if (count_limit && total_queued >= count_limit) break;
        if (s->group->rate > 0 && s->due > now) break;
        uint64_t sequence = ++s->queued;
        uint8_t *p = s->slot + (size_t)(sequence % s->slots) * s->slot_size;
        put32(p + USER_MESSAGE_ID, s->message_id++);
        put32(p + USER_SENT_TIME, (uint32_t)time(NULL));
        if (s->template->transaction) {
            put32(p + s->template->transaction + 12, (uint32_t)sequence);
            put32(p + s->template->transaction + 16, (uint32_t)sequence - 1);
        }
        s->mark[sequence & (RING - 1)] = 0;
        if (s->group->rate > 0) {
            s->sent_at[sequence & (RING - 1)] = s->due;
            s->due += (uint64_t)(1e9 / s->group->rate);
        } else {
            s->sent_at[sequence & (RING - 1)] = now;
        }
        total_queued++;
        s->group->sent_total++;
    }
}

static void pump(Session *s, uint64_t now)
{
    fill(s, now);
    while (s->written < s->queued) {
        struct iovec iov[MAX_IOV];
        int parts = 0;
        uint32_t skip = s->offset, size = s->template->size;
        for (uint64_t n = s->written + 1; n <= s->queued && parts < MAX_IOV - 1; n++, skip = 0) {
            uint8_t *p = s->slot + (size_t)(n % s->slots) * s->slot_size;
            if (skip < s->slot_size) {
                if (parts && (uint8_t *)iov[parts - 1].iov_base + iov[parts - 1].iov_len == p + skip) {
                    iov[parts - 1].iov_len += s->slot_size - skip;
                } else {
                    iov[parts++] = (struct iovec){p + skip, s->slot_size - skip};
                }
            }
            if (s->slot_size < size) {
                uint32_t from = skip > s->slot_size ? skip : s->slot_size;
                iov[parts++] = (struct iovec){s->template->packet + from, size - from};
            }
        }
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = (size_t)parts};
        ssize_t sent = sendmsg(s->fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) {
            interest(s, 1);
            return;
        }
        if (sent < 0) die("send: %s", strerror(errno));
        uint64_t bytes = s->offset + (uint64_t)sent;
        s->written += bytes / size;
        s->offset = (uint32_t)(bytes % size);
    }
    interest(s, 0);
    pay(s);
}

static void writable(Session *s)
{
    if (s->state == CONNECTING) {
        int error = 0, one = 1;
        socklen_t length = sizeof error;
        getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &length);
        if (error) die("connect: %s", strerror(error));
        setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        static const uint8_t any[16];
        uint8_t ec[EC_SIZE];
        put_ec(ec, s->guid, any, (uint32_t)(now_ns() / 1000000));
        send_small(s, ec, EC_SIZE);
        s->state = WAIT_EC;
        s->want_write = 1;
        interest(s, 0);
    } else if (s->state == OPEN) {
        pump(s, now_ns());
    }
}

static void start_session(Session *s, Group *group, const Template *template, const struct addrinfo *address)
{
    s->group = group;
    s->template = template;
    if (getrandom(s->guid, 16, 0) != 16) die("getrandom: %s", strerror(errno));
    s->message_id = 1;
    s->stamp = (uint32_t)time(NULL);
    s->slots = group->window;
    s->slot_size = template->size <= WHOLE_PACKET_LIMIT ? template->size : PREFIX;
    s->slot = need(malloc((size_t)s->slots * s->slot_size));
    for (uint32_t i = 0; i < s->slots; i++) {
        memcpy(s->slot + (size_t)i * s->slot_size, template->packet, s->slot_size);
        memcpy(s->slot + (size_t)i * s->slot_size + USER_SOURCE_QM, s->guid, 16);
        if (template->transaction) {
            put32(s->slot + (size_t)i * s->slot_size + template->transaction + 4, (uint32_t)(s - sessions) + 1);
            put32(s->slot + (size_t)i * s->slot_size + template->transaction + 8, s->stamp);
        }
    }
    s->sent_at = need(malloc(RING * sizeof *s->sent_at));
    s->mark = need(calloc(RING, 1));
    s->in = need(malloc(READ_BUFFER));
    s->fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (s->fd < 0) die("socket: %s", strerror(errno));
    if (connect(s->fd, address->ai_addr, address->ai_addrlen) && errno != EINPROGRESS) die("connect: %s", strerror(errno));
    struct epoll_event add = {.events = EPOLLIN | EPOLLOUT, .data.ptr = s};
    s->want_write = 1;
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, s->fd, &add)) die("epoll_ctl: %s", strerror(errno));
}

static void parse_group(char *text)
{
    if (group_count == MAX_GROUPS) die("at most %d groups", MAX_GROUPS);
    Group *g = &groups[group_count++];
    g->sessions = 1;
    g->window = 64;
    for (char *part = strtok(text, ","); part; part = strtok(NULL, ",")) {
        char *value = strchr(part, '=');
        if (!value) die("--group: %s has no value", part);
        *value++ = 0;
        if (!strcmp(part, "sessions")) g->sessions = atoi(value);
        else if (!strcmp(part, "window")) g->window = (uint32_t)atoi(value);
        else if (!strcmp(part, "rate")) g->rate = atof(value);
        else if (!strcmp(part, "packet")) {
            char *rest = value;
            for (char *path; (path = strsep(&rest, "+")) != NULL;) {
                if (g->files == MAX_FILES) die("at most %d packet files", MAX_FILES);
                Template *t = &g->file[g->files++];
                size_t size;
                t->packet = read_file(path, &size);
                if (size < PREFIX || packet_size(t->packet) != size) die("%s is not one packet", path);
                t->size = (uint32_t)size;
                t->recoverable = packet_recoverable(t->packet);
                if (packet_transactional(t->packet)) {
                    t->transaction = behind_destination(t->packet, t->size);
                    if (!t->transaction || t->transaction + TX_SIZE > t->size || t->size > WHOLE_PACKET_LIMIT)
                        die("%s is no transactional packet to a direct name of at most %d bytes", path, WHOLE_PACKET_LIMIT);
                }
            }
        } else die("--group: unknown key %s", part);
    }
    if (!g->files || g->sessions < 1 || g->window < 1 || g->window > MAX_WINDOW) die("--group: sessions, window or packet missing");
}

static struct addrinfo *resolve(char *target)
{
    char *port = strrchr(target, ':');
    if (!port) die("--connect wants HOST:PORT");
    *port++ = 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    int error = getaddrinfo(target, port, &hints, &found);
    if (error) die("%s: %s", target, gai_strerror(error));
    return found;
}

/* Serves events for up to `wait_ms`. */
static void turn(int wait_ms, int timer)
{
    struct epoll_event ready[64];
    int n = epoll_wait(poll_fd, ready, 64, wait_ms);
    for (int i = 0; i < n; i++) {
        Session *s = ready[i].data.ptr;
        if (!s) {
            uint64_t ticks, now = now_ns();
            if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN) die("timer: %s", strerror(errno));
            for (int k = 0; k < session_count; k++)
                if (sessions[k].state == OPEN && sessions[k].group->rate > 0) pump(&sessions[k], now);
            continue;
        }
        if (ready[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && s->state != CONNECTING) readable(s);
        if (ready[i].events & (EPOLLOUT | EPOLLERR)) writable(s);
    }
}

static int all_open(void)
{
    for (int i = 0; i < session_count; i++)
        if (sessions[i].state != OPEN) return 0;
    return 1;
}

static uint64_t undone(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < session_count; i++) sum += sessions[i].queued - sessions[i].done;
    return sum;
}

/* Transactional messages that no OrderAck covers. */
static uint64_t unordered(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < session_count; i++)
        if (sessions[i].template->transaction) sum += sessions[i].queued - sessions[i].ordered;
    return sum;
}

/* Nothing is left but express messages that a peer may leave unacknowledged until its timer runs out. */
static int only_express_left(void)
{
    if (now_ns() - last_done_ns < 500000000u) return 0;
    for (int i = 0; i < session_count; i++) {
        const Session *s = &sessions[i];
        if (s->queued > s->done && (s->template->recoverable || s->queued - s->done > s->group->window / 2)) return 0;
    }
    return 1;
}

static void report(double elapsed, uint64_t cpu)
{
    printf("{\"event\":\"result\",\"elapsed_s\":%.6f,\"generator_cpu_s\":%.6f,\"unacknowledged\":%llu,\"unordered\":%llu,\"groups\":[",
           elapsed, (double)cpu / 1e6, (unsigned long long)undone(), (unsigned long long)unordered());
    for (int i = 0; i < group_count; i++) {
        Group *g = &groups[i];
        printf("%s{\"sessions\":%d,\"window\":%u,\"packet_bytes\":%u,\"recoverable\":%s,\"messages\":%llu,\"bytes\":%llu,"
               "\"per_s\":%.1f,\"sent_total\":%llu,\"acknowledged_total\":%llu,\"session_acks\":%llu,\"order_acks\":%llu,\"ack_time\":",
               i ? "," : "", g->sessions, g->window, g->file[0].size, g->file[0].recoverable ? "true" : "false",
               (unsigned long long)g->done, (unsigned long long)g->done_bytes,
               elapsed > 0 ? (double)g->done / elapsed : 0.0, (unsigned long long)g->sent_total,
               (unsigned long long)g->done_total, (unsigned long long)g->acks, (unsigned long long)g->order_acks);
        hist_print_json(&g->latency);
        printf("}");
    }
    printf("]}\n");
}

int main(int argc, char **argv)
{
    double warmup = 0, seconds = 0;
    uint64_t max_bytes = 0;
    struct addrinfo *address = NULL;
    int paced = 0;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (!strcmp(option, "--receipt-window")) {
            receipt_window = 1;
            continue;
        }
        if (++i == argc) die("%s wants a value", option);
        if (!strcmp(option, "--connect")) address = resolve(argv[i]);
        else if (!strcmp(option, "--warmup")) warmup = atof(argv[i]);
        else if (!strcmp(option, "--seconds")) seconds = atof(argv[i]);
        else if (!strcmp(option, "--count")) count_limit = strtoull(argv[i], NULL, 10);
        else if (!strcmp(option, "--max-bytes")) max_bytes = strtoull(argv[i], NULL, 10);
        else if (!strcmp(option, "--group")) parse_group(argv[i]);
        else die("unknown option %s", option);
    }
    if (!address || !group_count || (seconds <= 0 && !count_limit)) die("--connect, --group and one of --seconds, --count are needed");
    for (int i = 0; i < group_count; i++) {
        session_count += groups[i].sessions;
        paced |= groups[i].rate > 0;
    }
    poll_fd = epoll_create1(0);
    sessions = need(calloc((size_t)session_count, sizeof *sessions));
    for (int i = 0, next = 0; i < group_count; i++)
        for (int k = 0; k < groups[i].sessions; k++)
            start_session(&sessions[next++], &groups[i], &groups[i].file[k % groups[i].files], address);
    uint64_t limit = now_ns() + 30000000000u;
    while (!all_open()) {
        if (now_ns() > limit) die("the sessions did not open within 30 s");
        turn(100, -1);
    }
    int timer = -1;
    if (paced) {
        timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
        struct itimerspec every = {{0, 200000}, {0, 200000}};
        struct epoll_event add = {.events = EPOLLIN, .data.ptr = NULL};
        timerfd_settime(timer, 0, &every, NULL);
        epoll_ctl(poll_fd, EPOLL_CTL_ADD, timer, &add);
    }

    uint64_t begin = now_ns(), cpu = 0, start = 0;
    uint64_t start_at = begin + (uint64_t)(warmup * 1e9);
    sending = 1;
    for (int i = 0; i < session_count; i++) {
        sessions[i].due = begin;
        pump(&sessions[i], begin);
    }
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
        if (count_limit && total_queued >= count_limit && (undone() == 0 || only_express_left())) break;
        turn(20, timer);
    }
    uint64_t stop = count_limit && total_queued >= count_limit && last_done_ns > start ? last_done_ns : now_ns();
    measuring = 0;
    cpu = cpu_us() - cpu;
    event("stop");
    sending = 0;
    limit = now_ns() + (uint64_t)DRAIN_SECONDS * 1000000000u;
    while ((undone() || unordered()) && now_ns() < limit) {
        if (!unordered() && only_express_left()) break;
        turn(20, timer);
    }
    report((double)(stop - start) / 1e9, cpu);
    return unordered() || (undone() && !only_express_left()) ? 2 : 0;
}
