/* What the cases of the suite share. A failed check prints its place and ends the program. */
#ifndef SUITE_H
#define SUITE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mq.h"

#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);  \
            exit(1);                                                                   \
        }                                                                              \
    } while (0)

#define EQUAL(found, wanted) \
    equal((unsigned long long)(found), (unsigned long long)(wanted), #found, __FILE__, __LINE__)
#define RESULT(call, wanted) EQUAL((uint32_t)(call), (uint32_t)(wanted))
#define OK(call) RESULT(call, MQ_OK)

void equal(unsigned long long found, unsigned long long wanted, const char *what, const char *file, int line);

/* A case; the program runs those whose names it is given. */
struct test_case {
    const char *name;
    void (*run)(void);
};
extern const struct test_case QUEUE_CASES[], SEND_CASES[], RECEIVE_CASES[], TRANSACTION_CASES[], ASYNC_CASES[],
    PROPERTY_CASES[], MANAGEMENT_CASES[], LINK_CASES[], HOSTILE_CASES[];

/* Properties of a call under construction. */
struct bag {
    DWORD count;
    PROPID ids[100];
    MQPROPVARIANT values[100];
    HRESULT statuses[100];
    union {
        MQMSGPROPS message;
        MQQUEUEPROPS queue;
        MQQMPROPS machine;
        MQMGMTPROPS management;
        MQPRIVATEPROPS private;
    } props; /* all have one layout */
};

/* Adds a property and returns its value, which is VT_EMPTY. */
MQPROPVARIANT *add(struct bag *bag, PROPID id, VARTYPE type);
void add_u1(struct bag *bag, PROPID id, unsigned value);
void add_u4(struct bag *bag, PROPID id, unsigned value);
void add_text(struct bag *bag, PROPID id, const WCHAR *text);
void add_bytes(struct bag *bag, PROPID id, const void *bytes, size_t size);
MQPROPVARIANT *value_of(struct bag *bag, PROPID id);
HRESULT status_of(struct bag *bag, PROPID id);
/* The structure of a call. */
MQMSGPROPS *message(struct bag *bag);
MQQUEUEPROPS *queue_props(struct bag *bag);

/* Creates .\private$\NAME and returns its direct format name, which lives until the end. */
const WCHAR *create(const char *name, bool transactional);
const WCHAR *wide(const char *ascii); /* lives until the end */
bool same(const WCHAR *text, const char *ascii);
size_t wide_length_of(const WCHAR *text);
QUEUEHANDLE opened(const WCHAR *name, DWORD access);
HRESULT send_text(QUEUEHANDLE queue, const char *body, const WCHAR *label, ITransaction *transaction);
/* Receives a body of at most 63 bytes as text. */
HRESULT receive_text(QUEUEHANDLE queue, DWORD action, HANDLE cursor, ITransaction *transaction, char body[64]);
/* Reads a message by its lookup id, or the first message or that at a cursor. Its body must be `body`; returns its lookup
 * id, or 0 if the wanted result is an error. */
uint64_t lookup(QUEUEHANDLE reader, uint64_t id, DWORD action, HRESULT wanted, const char *body);
uint64_t read_at(QUEUEHANDLE reader, DWORD action, HANDLE cursor, const char *body);
unsigned messages_in(const WCHAR *name);

/* Speaks with the program that runs the suite: prints a line, and waits for one. */
void ask(const char *what);

#endif
