/* Load on other brokers, as app_load and mqqb_load give it to msmq-fast: one thread, frames written as many at a time as there are.
 *
 * Usage: peer_load --protocol redis|nats|amqp|postgres --connect HOST:PORT|PATH --queue NAME [--memory] [--produce N] [--consume N]
 *                  [--body BYTES] [--window N] [--lockstep] [--warmup S] --seconds S
 *
 * Makes the queue, then N producers with `window` messages each that are not confirmed, and N consumers. --lockstep sends one message
 * when the one before was confirmed and delivered. --memory: a queue that is lost with the broker.
 *
 * Prints {"event":"start"}, {"event":"stop"} and the result, one JSON object a line. */
#include "peer_amqp.h"
#include "peer_nats.h"
#include "peer_postgres.h"
#include "peer_redis.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/un.h>

enum { MAX_CLIENTS = 128, POLL_MS = 1 };

const char *queue_name;
size_t body_size = 1024;
int in_memory, lockstep;

static const Protocol *const protocols[] = {&redis, &nats, &amqp, &postgres};
static const Protocol *protocol;
static Client *clients[MAX_CLIENTS];
static int client_count, poll_fd, measuring;
static uint64_t window = 64, in_messages, out_messages, produced, confirmed, delivered;
static Histogram confirm_time, end_to_end_time;
static uint8_t *body;

void peer_confirmed_one(Client *c, uint64_t message)
{
    uint64_t *at = &c->sent_at[message & (RING - 1)], now = now_ns();
    if (message <= c->confirmed || message > c->sent) die("a confirmation of message %llu of %llu", (unsigned long long)message, (unsigned long long)c->sent);
    if (!*at) return;
    if (measuring) {
        in_messages++;
        hist_add(&confirm_time, now - *at);
    }
    *at = 0;
    confirmed++;
    while (c->confirmed < c->sent && !c->sent_at[(c->confirmed + 1) & (RING - 1)]) c->confirmed++;
}

void peer_confirmed(Client *c, uint64_t count)
{
    while (count--) peer_confirmed_one(c, c->confirmed + 1);
}

void peer_delivered(const uint8_t *data)
{
    uint64_t then;
    memcpy(&then, data, sizeof then);
    delivered++;
    if (!measuring) return;
    out_messages++;
    hist_add(&end_to_end_time, now_ns() - then);
}

void peer_write(Client *c)
{
    for (size_t done = 0; done < c->out.size; ) {
        ssize_t n = send(c->fd, c->out.data + done, c->out.size - done, MSG_NOSIGNAL);
        if (n < 0) die("send: %s", strerror(errno));
        done += (size_t)n;
    }
    c->out.size = 0;
}

void peer_read_more(Client *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_have, IN_SIZE - c->in_have, 0);
    if (n <= 0) die("%s: %s", protocol->name, n ? strerror(errno) : "the broker closes the connection");
    c->in_have += (size_t)n;
}

static int connect_to(const char *address)
{
    int fd;
    if (*address == '/') {
        struct sockaddr_un path = {.sun_family = AF_UNIX};
        if (strlen(address) >= sizeof path.sun_path) die("%s is too long", address);
        strcpy(path.sun_path, address);
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&path, sizeof path)) die("%s: %s", address, strerror(errno));
        return fd;
    }
    char host[256];
    const char *port = strrchr(address, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (!port || (size_t)(port - address) >= sizeof host) die("%s is not HOST:PORT", address);
    memcpy(host, address, (size_t)(port - address));
    host[port - address] = 0;
    if (getaddrinfo(host, port + 1, &hints, &found)) die("%s is not an address", address);
    fd = socket(found->ai_family, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen)) die("connect: %s: %s", address, strerror(errno));
    freeaddrinfo(found);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    return fd;
}

static Client *new_client(const char *address, int role)
{
    Client *c = need(calloc(1, sizeof *c));
    c->role = role;
    c->number = client_count;
    c->in = need(malloc(IN_SIZE));
    c->fd = connect_to(address);
    return c;
}

static void add_client(const char *address, int role)
{
    if (client_count == MAX_CLIENTS) die("at most %d clients", MAX_CLIENTS);
    Client *c = clients[client_count++] = new_client(address, role);
    protocol->open(c);
    set_nonblocking(c->fd);
    struct epoll_event add = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &add)) die("epoll_ctl: %s", strerror(errno));
}

static void flush(Client *c)
{
    while (c->out_done < c->out.size) {
        ssize_t n = send(c->fd, c->out.data + c->out_done, c->out.size - c->out_done, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) die("send: %s", strerror(errno));
        c->out_done += (size_t)n;
    }
    c->out.size = c->out_done = 0;
}

static int may_send(const Client *c)
{
    if (lockstep) return confirmed == produced && delivered == produced;
    return c->sent - c->confirmed < window;
}

static void produce(Client *c)
{
    uint64_t before = c->sent;
    if (c->out.size) return;
    while (may_send(c)) {
        uint64_t now = now_ns();
        memcpy(body, &now, sizeof now);
        c->sent_at[++c->sent & (RING - 1)] = now;
        protocol->send(c, body);
        produced++;
    }
    if (c->sent != before && protocol->flush) protocol->flush(c);
}

static void read_client(Client *c)
{
    for (;;) {
        ssize_t n = recv(c->fd, c->in + c->in_have, IN_SIZE - c->in_have, 0);
        if (n < 0 && errno == EAGAIN) return;
        if (n <= 0) die("%s: %s", protocol->name, n ? strerror(errno) : "the broker closes the connection");
        int all = c->in_have + (size_t)n < IN_SIZE;
        c->in_have += (size_t)n;
        size_t done = protocol->take(c, c->in, c->in_have);
        if (!done && c->in_have == IN_SIZE) die("%s: a reply of more than %d bytes", protocol->name, IN_SIZE);
        memmove(c->in, c->in + done, c->in_have - done);
        c->in_have -= done;
        if (all) return;
    }
}

static void turn(void)
{
    struct epoll_event events[MAX_CLIENTS];
    int polling = 0;
    for (int i = 0; i < client_count; i++) polling |= !lockstep && clients[i]->role == CONSUMER && clients[i]->polling;
    int n = epoll_wait(poll_fd, events, MAX_CLIENTS, polling ? POLL_MS : 20);
    for (int i = 0; i < n; i++) read_client(events[i].data.ptr);
    for (int i = 0; i < client_count; i++) {
        Client *c = clients[i];
        if (c->role == PRODUCER) produce(c);
        else if (protocol->poll && c->polling && !lockstep) protocol->poll(c);
        flush(c);
    }
}

static void print_result(double elapsed, double cpu)
{
    printf("{\"event\":\"result\",\"elapsed_s\":%.6f,\"generator_cpu_s\":%.6f,\"in_per_s\":%.1f,\"out_per_s\":%.1f,\"confirm_time\":",
           elapsed, cpu, (double)in_messages / elapsed, (double)out_messages / elapsed);
    hist_print_json(&confirm_time);
    printf(",\"end_to_end_time\":");
    hist_print_json(&end_to_end_time);
    printf("}\n");
}

int main(int argc, char **argv)
{
    const char *address = NULL, *name = "";
    int producers = 1, consumers = 0;
    double seconds = 0, warmup = 1;
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (!strcmp(option, "--memory")) in_memory = 1;
        else if (!strcmp(option, "--lockstep")) lockstep = 1;
        else if (++i == argc) die("%s has no value", option);
        else if (!strcmp(option, "--protocol")) name = argv[i];
        else if (!strcmp(option, "--connect")) address = argv[i];
        else if (!strcmp(option, "--queue")) queue_name = argv[i];
        else if (!strcmp(option, "--produce")) producers = atoi(argv[i]);
        else if (!strcmp(option, "--consume")) consumers = atoi(argv[i]);
        else if (!strcmp(option, "--body")) body_size = strtoull(argv[i], NULL, 10);
        else if (!strcmp(option, "--window")) window = strtoull(argv[i], NULL, 10);
        else if (!strcmp(option, "--warmup")) warmup = atof(argv[i]);
        else if (!strcmp(option, "--seconds")) seconds = atof(argv[i]);
        else die("%s is not an option", option);
    }
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        if (!strcmp(protocols[i]->name, name)) protocol = protocols[i];
    if (!protocol || !address || !queue_name || seconds <= 0) die("--protocol, --connect, --queue and --seconds are needed");
    if (body_size < 8 || window < 1 || window >= RING) die("--body is at least 8, --window between 1 and %d", RING - 1);
    if (lockstep && (producers != 1 || consumers != 1)) die("--lockstep is for one producer and one consumer");
    body = need(malloc(body_size));
    for (size_t i = 0; i < body_size; i++) body[i] = (uint8_t)(i * 2654435761u >> 13);
    poll_fd = epoll_create1(0);
    Client *first = new_client(address, PRODUCER);
    protocol->create(first);
    close(first->fd);
    for (int i = 0; i < consumers; i++) add_client(address, CONSUMER);
    for (int i = 0; i < producers; i++) add_client(address, PRODUCER);
    for (int i = 0; i < client_count; i++) {
        if (clients[i]->role == PRODUCER) produce(clients[i]);
        flush(clients[i]);
    }
    uint64_t begin = now_ns(), start = 0, cpu = 0;
    for (;;) {
        uint64_t now = now_ns();
        if (!measuring && now - begin >= (uint64_t)(warmup * 1e9)) {
            event("start");
            measuring = 1;
            start = now = now_ns();
            cpu = cpu_us();
        }
        if (measuring && now - start >= (uint64_t)(seconds * 1e9)) break;
        turn();
    }
    double elapsed = (double)(now_ns() - start) / 1e9;
    cpu = cpu_us() - cpu;
    event("stop");
    print_result(elapsed, (double)cpu / 1e6);
    return 0;
}
