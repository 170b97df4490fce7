/* NATS JetStream: a work queue; each message is published with an inbox for its acknowledgment. The consumer is durable, gets messages
 * pushed, and acknowledges each. */
#ifndef BENCH_PEER_NATS_H
#define BENCH_PEER_NATS_H

#include "peer.h"

static size_t nats_take(Client *c, const uint8_t *at, size_t size);
static uint64_t nats_answers;   /* to requests of `create` and `open` */
static int nats_asking;

static void nats_wait(Client *c, uint64_t answers)
{
    peer_write(c);
    while (nats_answers < answers) {
        peer_read_more(c);
        size_t done = nats_take(c, c->in, c->in_have);
        memmove(c->in, c->in + done, c->in_have - done);
        c->in_have -= done;
    }
}

static void nats_ask(Client *c, const char *subject, const char *body)
{
    put_format(&c->out, "PUB $JS.API.%s _INBOX.%d.%d %zu\r\n%s\r\n", subject, getpid(), c->number, strlen(body), body);
    nats_wait(c, nats_answers + 1);
}

static void nats_connect(Client *c)
{
    nats_asking = 1;
    put_format(&c->out, "CONNECT {\"verbose\":false,\"pedantic\":false,\"name\":\"bench\",\"lang\":\"c\",\"version\":\"1\"}\r\n");
    put_format(&c->out, "SUB _INBOX.%d.%d 1\r\nPING\r\n", getpid(), c->number);
    nats_wait(c, nats_answers + 1);
}

static void nats_create(Client *c)
{
    char subject[256], body[512];
    nats_connect(c);
    snprintf(subject, sizeof subject, "STREAM.CREATE.%s", queue_name);
    snprintf(body, sizeof body, "{\"name\":\"%s\",\"subjects\":[\"%s\"],\"retention\":\"workqueue\",\"storage\":\"%s\",\"num_replicas\":1}",
             queue_name, queue_name, in_memory ? "memory" : "file");
    nats_ask(c, subject, body);
    nats_asking = 0;
}

static void nats_open(Client *c)
{
    char subject[256], body[512];
    nats_connect(c);
    if (c->role == CONSUMER) {
        put_format(&c->out, "SUB deliver.%s 2\r\n", queue_name);
        snprintf(subject, sizeof subject, "CONSUMER.DURABLE.CREATE.%s.c", queue_name);
        snprintf(body, sizeof body, "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"c\",\"deliver_subject\":\"deliver.%s\","
                 "\"deliver_policy\":\"all\",\"ack_policy\":\"explicit\",\"max_ack_pending\":4096}}", queue_name, queue_name);
        nats_ask(c, subject, body);
    }
    nats_asking = 0;
}

static void nats_send(Client *c, const uint8_t *data)
{
    put_format(&c->out, "PUB %s _INBOX.%d.%d %zu\r\n", queue_name, getpid(), c->number, body_size);
    put_bytes(&c->out, data, body_size);
    put_bytes(&c->out, "\r\n", 2);
}

/* MSG subject sid [reply] size, and as many bytes. */
static size_t nats_message(Client *c, const char *line, size_t length, size_t size)
{
    char text[512], *rest = text, *word[5] = {0};
    int words = 0;
    if (length >= sizeof text) die("nats: a line of %zu bytes", length);
    memcpy(text, line, length);
    text[length] = 0;
    for (char *w; words < 5 && (w = strsep(&rest, " ")); ) word[words++] = w;
    if (words < 4) die("nats: %s", text);
    size_t payload = strtoull(word[words - 1], NULL, 10), whole = length + 2 + payload + 2;
    const char *data = line + length + 2;
    if (size < whole) return 0;
    if (atoi(word[2]) == 2) {
        if (words != 5 || payload != body_size) die("nats: delivered without a reply: %s", text);
        peer_delivered((const uint8_t *)data);
        put_format(&c->out, "PUB %s 0\r\n\r\n", word[3]);
        return whole;
    }
    if (memmem(data, payload, "\"error\"", 7)) die("nats: %.*s", (int)payload, data);
    if (nats_asking) nats_answers++;
    else peer_confirmed(c, 1);
    return whole;
}

static size_t nats_take(Client *c, const uint8_t *at, size_t size)
{
    size_t done = 0;
    for (;;) {
        const char *line = (const char *)at + done;
        ssize_t length = line_length(at + done, size - done);
        if (length < 0) return done;
        size_t used = (size_t)length + 2;
        if (!strncmp(line, "MSG ", 4)) used = nats_message(c, line, (size_t)length, size - done);
        else if (!strncmp(line, "PING", 4)) put_format(&c->out, "PONG\r\n");
        else if (!strncmp(line, "PONG", 4)) nats_answers++;
        else if (strncmp(line, "INFO", 4) && strncmp(line, "+OK", 3)) die("nats: %.*s", (int)length, line);
        if (!used) return done;
        done += used;
    }
}

static const Protocol nats = {"nats", nats_create, nats_open, nats_send, NULL, nats_take, NULL};

#endif
