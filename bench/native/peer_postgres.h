/* PostgreSQL: a table. The messages of one write are one pipeline of prepared INSERTs, and one transaction; the consumer deletes the
 * oldest 64 rows with FOR UPDATE SKIP LOCKED. One at a time it waits for a notification of a trigger, else it asks again. */
#ifndef BENCH_PEER_POSTGRES_H
#define BENCH_PEER_POSTGRES_H

#include "peer.h"

static size_t pg_take(Client *c, const uint8_t *at, size_t size);
static int pg_ready;            /* ReadyForQuery came */
static int pg_notified;         /* since the consumer asked */

static size_t pg_begin(Buffer *b, char type)
{
    put_big_endian(b, (uint64_t)type, 1);
    put_big_endian(b, 0, 4);
    return b->size - 4;
}

static void pg_end(Buffer *b, size_t at)
{
    uint32_t size = __builtin_bswap32((uint32_t)(b->size - at));
    memcpy(b->data + at, &size, 4);
}

static void pg_text(Buffer *b, const char *text) { put_bytes(b, text, strlen(text) + 1); }

static void pg_wait(Client *c)
{
    peer_write(c);
    for (pg_ready = 0; !pg_ready; ) {
        peer_read_more(c);
        size_t done = pg_take(c, c->in, c->in_have);
        memmove(c->in, c->in + done, c->in_have - done);
        c->in_have -= done;
    }
}

static void pg_query(Client *c, const char *text)
{
    size_t at = pg_begin(&c->out, 'Q');
    pg_text(&c->out, text);
    pg_end(&c->out, at);
    pg_wait(c);
}

static void pg_connect(Client *c)
{
    static const char startup[] = "\0\3\0\0user\0postgres\0database\0postgres\0";
    put_big_endian(&c->out, sizeof startup + 4, 4);
    put_bytes(&c->out, startup, sizeof startup);
    pg_wait(c);
}

static void pg_create(Client *c)
{
    char text[512];
    pg_connect(c);
    snprintf(text, sizeof text, "CREATE %s TABLE %s (id bigserial PRIMARY KEY, body bytea)",
             in_memory ? "UNLOGGED" : "", queue_name);
    pg_query(c, text);
    if (!lockstep) return;
    snprintf(text, sizeof text, "CREATE FUNCTION wake() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NOTIFY arrived; RETURN NULL; END';"
             "CREATE TRIGGER wake AFTER INSERT ON %s FOR EACH STATEMENT EXECUTE FUNCTION wake()", queue_name);
    pg_query(c, text);
}

static void pg_bind(Client *c, const uint8_t *data)
{
    Buffer *b = &c->out;
    size_t at = pg_begin(b, 'B');
    pg_text(b, "");
    pg_text(b, "bench");
    put_big_endian(b, 1, 2);                    /* parameters in binary form */
    put_big_endian(b, 1, 2);
    put_big_endian(b, data ? 1 : 0, 2);
    if (data) {
        put_big_endian(b, body_size, 4);
        put_bytes(b, data, body_size);
    }
    put_big_endian(b, 1, 2);                    /* results in binary form */
    put_big_endian(b, 1, 2);
    pg_end(b, at);
    at = pg_begin(b, 'E');
    pg_text(b, "");
    put_big_endian(b, 0, 4);
    pg_end(b, at);
}

static void pg_sync(Client *c) { pg_end(&c->out, pg_begin(&c->out, 'S')); }

static void pg_ask(Client *c)
{
    c->polling = pg_notified = 0;
    pg_bind(c, NULL);
    pg_sync(c);
}

static void pg_open(Client *c)
{
    char text[512];
    pg_connect(c);
    if (c->role == CONSUMER && lockstep) pg_query(c, "LISTEN arrived");
    if (c->role == PRODUCER) snprintf(text, sizeof text, "INSERT INTO %s (body) VALUES ($1)", queue_name);
    else snprintf(text, sizeof text, "DELETE FROM %s WHERE id IN (SELECT id FROM %s ORDER BY id LIMIT 64 FOR UPDATE SKIP LOCKED) "
                  "RETURNING body", queue_name, queue_name);
    size_t at = pg_begin(&c->out, 'P');
    pg_text(&c->out, "bench");
    pg_text(&c->out, text);
    put_big_endian(&c->out, 0, 2);
    pg_end(&c->out, at);
    pg_sync(c);
    pg_wait(c);
    if (c->role == CONSUMER) {
        pg_ask(c);
        peer_write(c);
    }
}

static void pg_send(Client *c, const uint8_t *data) { pg_bind(c, data); }

static size_t pg_take(Client *c, const uint8_t *at, size_t size)
{
    size_t done = 0;
    while (size - done >= 5) {
        const uint8_t *m = at + done;
        size_t whole = 1 + get_big_endian(m + 1, 4);
        if (size - done < whole) break;
        done += whole;
        if (*m == 'E') die("postgres: %.*s", (int)(whole - 5), (const char *)m + 5);
        if (*m == 'R' && get_big_endian(m + 5, 4)) die("postgres: it asks for a password");
        if (*m == 'D') c->pending++, peer_delivered(m + 11);
        if (*m == 'C' && c->role == PRODUCER) c->pending++;
        if (*m == 'A') pg_notified = 1;
        if (*m == 'A' && c->polling) pg_ask(c);
        if (*m != 'Z') continue;
        pg_ready = 1;
        if (c->role == PRODUCER && c->sent) peer_confirmed(c, c->pending);
        else if (c->role == CONSUMER && (lockstep ? pg_notified : c->pending > 0)) pg_ask(c);
        else c->polling = 1;
        c->pending = 0;
    }
    return done;
}

static const Protocol postgres = {"postgres", pg_create, pg_open, pg_send, pg_sync, pg_take, pg_ask};

#endif
