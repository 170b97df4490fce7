/* Opening, closing, names, cursors, purges and moves. */
#include "suite.h"

#define NOWHERE ((HANDLE)(uintptr_t)0xDEADBEE8)

static void open_and_close(void) {
    const WCHAR *name = create("opening", false);
    QUEUEHANDLE queue = NOWHERE, other;
    RESULT(MQOpenQueue(name, MQ_SEND_ACCESS, MQ_DENY_NONE, NULL), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQOpenQueue(NULL, MQ_SEND_ACCESS, MQ_DENY_NONE, &queue), MQ_ERROR_INVALID_PARAMETER);
    CHECK(queue == NULL);
    RESULT(MQOpenQueue(u".\\private$\\opening", MQ_SEND_ACCESS, 0, &queue), MQ_ERROR_ILLEGAL_FORMATNAME);
    RESULT(MQOpenQueue(u"opening", MQ_SEND_ACCESS, 0, &queue), MQ_ERROR_ILLEGAL_FORMATNAME);
    RESULT(MQOpenQueue(u"", MQ_SEND_ACCESS, 0, &queue), MQ_ERROR_ILLEGAL_FORMATNAME);
    RESULT(MQOpenQueue(u"DIRECT=OS:\xD800", MQ_SEND_ACCESS, 0, &queue), MQ_ERROR_ILLEGAL_FORMATNAME);
    RESULT(MQOpenQueue(name, 0, 0, &queue), MQ_ERROR_UNSUPPORTED_ACCESS_MODE);
    RESULT(MQOpenQueue(name, MQ_SEND_ACCESS | MQ_RECEIVE_ACCESS, 0, &queue), MQ_ERROR_UNSUPPORTED_ACCESS_MODE);
    RESULT(MQOpenQueue(name, 0x100, 0, &queue), MQ_ERROR_UNSUPPORTED_ACCESS_MODE);
    RESULT(MQOpenQueue(name, MQ_RECEIVE_ACCESS, 2, &queue), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQOpenQueue(name, MQ_SEND_ACCESS, MQ_DENY_RECEIVE_SHARE, &queue), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQOpenQueue(u"DIRECT=OS:.\\private$\\missing", MQ_RECEIVE_ACCESS, 0, &queue), MQ_ERROR_QUEUE_NOT_FOUND);
    OK(MQOpenQueue(name, MQ_RECEIVE_ACCESS, MQ_DENY_RECEIVE_SHARE, &queue));
    RESULT(MQOpenQueue(name, MQ_RECEIVE_ACCESS, MQ_DENY_NONE, &other), MQ_ERROR_SHARING_VIOLATION);
    OK(MQCloseQueue(queue));
    RESULT(MQCloseQueue(queue), MQ_ERROR_INVALID_HANDLE);
    RESULT(MQCloseQueue(NULL), MQ_ERROR_INVALID_HANDLE);
    RESULT(MQCloseQueue(NOWHERE), MQ_ERROR_INVALID_HANDLE);
    queue = opened(u"direct=os:.\\PRIVATE$\\Opening", MQ_PEEK_ACCESS); /* case does not matter */
    OK(MQCloseQueue(queue));
}

/* A handle that was closed is not the next handle, though its place in the table is used again. */
static void old_handles(void) {
    const WCHAR *name = create("old", false);
    QUEUEHANDLE first = opened(name, MQ_SEND_ACCESS);
    OK(MQCloseQueue(first));
    QUEUEHANDLE second = opened(name, MQ_SEND_ACCESS);
    CHECK(first != second);
    RESULT(send_text(first, "x", NULL, NULL), MQ_ERROR_INVALID_HANDLE);
    for (uintptr_t bit = 0; bit < 64; bit++)
        RESULT(MQCloseQueue((HANDLE)((uintptr_t)second ^ (uintptr_t)1 << bit)), MQ_ERROR_INVALID_HANDLE);
    OK(send_text(second, "x", NULL, NULL));
    OK(MQCloseQueue(second));
}

static void access_of_handles(void) {
    const WCHAR *name = create("rights", false);
    char body[64];
    HANDLE cursor;
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), peeker = opened(name, MQ_PEEK_ACCESS),
                reader = opened(name, MQ_RECEIVE_ACCESS);
    OK(send_text(sender, "x", NULL, NULL));
    RESULT(send_text(reader, "x", NULL, NULL), MQ_ERROR_ACCESS_DENIED);
    RESULT(receive_text(sender, MQ_ACTION_RECEIVE, NULL, NULL, body), MQ_ERROR_ACCESS_DENIED);
    RESULT(receive_text(peeker, MQ_ACTION_RECEIVE, NULL, NULL, body), MQ_ERROR_ACCESS_DENIED);
    OK(receive_text(peeker, MQ_ACTION_PEEK_CURRENT, NULL, NULL, body));
    OK(receive_text(reader, MQ_ACTION_PEEK_CURRENT, NULL, NULL, body));
    RESULT(MQPurgeQueue(peeker), MQ_ERROR_ACCESS_DENIED);
    RESULT(MQPurgeQueue(sender), MQ_ERROR_ACCESS_DENIED);
    RESULT(MQPurgeQueue(NULL), MQ_ERROR_INVALID_HANDLE);
    RESULT(MQCreateCursor(sender, &cursor), MQ_ERROR_ACCESS_DENIED);
    RESULT(MQMarkMessageRejected(peeker, 1), MQ_ERROR_ACCESS_DENIED);
    OK(MQPurgeQueue(reader));
    EQUAL(messages_in(name), 0);
    RESULT(receive_text(reader, MQ_ACTION_RECEIVE, NULL, NULL, body), MQ_ERROR_IO_TIMEOUT);
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(peeker));
    OK(MQCloseQueue(reader));
}

static void names(void) {
    WCHAR name[64];
    DWORD length = 64;
    GUID guid = {0x01020304, 0x0506, 0x0708, {9, 10, 11, 12, 13, 14, 15, 16}};
    OK(MQInstanceToFormatName(&guid, name, &length));
    CHECK(same(name, "PUBLIC=01020304-0506-0708-090a-0b0c0d0e0f10"));
    EQUAL(length, 44);
    length = 43;
    RESULT(MQInstanceToFormatName(&guid, name, &length), MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL);
    EQUAL(length, 44);
    RESULT(MQInstanceToFormatName(NULL, name, &length), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQInstanceToFormatName(&guid, name, NULL), MQ_ERROR_INVALID_PARAMETER);

    length = 64;
    OK(MQPathNameToFormatName(u".\\private$\\a", name, &length));
    CHECK(same(name, "DIRECT=OS:.\\private$\\a"));
    EQUAL(length, 23);
    length = 22;
    RESULT(MQPathNameToFormatName(u".\\private$\\a", name, &length), MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL);
    EQUAL(length, 23);
    length = 0;
    RESULT(MQPathNameToFormatName(u".\\private$\\a", NULL, &length), MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL);
    EQUAL(length, 23);
    RESULT(MQPathNameToFormatName(u".\\private$\\a", NULL, &length), MQ_ERROR_INVALID_PARAMETER);
    length = 64;
    OK(MQPathNameToFormatName(u"HOST\\system$;deadletter", name, &length));
    CHECK(same(name, "DIRECT=OS:HOST\\system$;deadletter"));
    static const WCHAR *const wrong[] = {u"", u"a", u"\\a", u".\\", u".\\private$\\", u".\\system$;", u".\\a\\b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        length = 64;
        RESULT(MQPathNameToFormatName(wrong[i], name, &length), MQ_ERROR_ILLEGAL_QUEUE_PATHNAME);
    }
    length = 64;
    CHECK(FAILED(MQPathNameToFormatName(u".\\public", name, &length)));
    RESULT(MQPathNameToFormatName(NULL, name, &length), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQPathNameToFormatName(u".\\private$\\a", name, NULL), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQADsPathToFormatName(u"LDAP://CN=a", name, &length), MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION);
    RESULT(MQADsPathToFormatName(NULL, name, &length), MQ_ERROR_INVALID_PARAMETER);

    const WCHAR *direct = create("named", false);
    QUEUEHANDLE queue = opened(direct, MQ_SEND_ACCESS);
    length = 64;
    OK(MQHandleToFormatName(queue, name, &length));
    CHECK(same(name, "DIRECT=OS:.\\private$\\named"));
    length = 5;
    RESULT(MQHandleToFormatName(queue, name, &length), MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL);
    EQUAL(length, 27);
    RESULT(MQHandleToFormatName(queue, name, NULL), MQ_ERROR_INVALID_PARAMETER);
    OK(MQCloseQueue(queue));
    RESULT(MQHandleToFormatName(queue, name, &length), MQ_ERROR_INVALID_HANDLE);
}

static void cursors(void) {
    const WCHAR *name = create("cursors", false);
    char body[64];
    HANDLE cursor, other;
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS),
                second = opened(name, MQ_RECEIVE_ACCESS);
    for (const char *text = "abc"; *text != 0; text++) OK(send_text(sender, (char[]){*text, 0}, NULL, NULL));
    RESULT(MQCreateCursor(reader, NULL), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQCreateCursor(NOWHERE, &cursor), MQ_ERROR_INVALID_HANDLE);
    OK(MQCreateCursor(reader, &cursor));
    RESULT(receive_text(reader, MQ_ACTION_PEEK_NEXT, NULL, NULL, body), MQ_ERROR_ILLEGAL_CURSOR_ACTION);
    RESULT(receive_text(reader, MQ_ACTION_PEEK_NEXT, cursor, NULL, body), MQ_ERROR_ILLEGAL_CURSOR_ACTION);
    OK(receive_text(reader, MQ_ACTION_PEEK_CURRENT, cursor, NULL, body));
    CHECK(strcmp(body, "a") == 0);
    OK(receive_text(reader, MQ_ACTION_PEEK_NEXT, cursor, NULL, body));
    CHECK(strcmp(body, "b") == 0);
    OK(receive_text(reader, MQ_ACTION_PEEK_CURRENT, cursor, NULL, body));
    CHECK(strcmp(body, "b") == 0);
    OK(receive_text(reader, MQ_ACTION_RECEIVE, cursor, NULL, body));
    CHECK(strcmp(body, "b") == 0);
    OK(MQReceiveMessage(reader, 0, MQ_ACTION_PEEK_CURRENT, NULL, NULL, NULL, cursor, NULL)); /* no properties */
    RESULT(receive_text(second, MQ_ACTION_PEEK_CURRENT, cursor, NULL, body), MQ_ERROR_INVALID_HANDLE);
    RESULT(receive_text(reader, MQ_ACTION_PEEK_CURRENT, NOWHERE, NULL, body), MQ_ERROR_INVALID_HANDLE);
    RESULT(MQCloseCursor(reader), MQ_ERROR_INVALID_HANDLE);
    RESULT(MQCloseQueue(cursor), MQ_ERROR_INVALID_HANDLE);
    OK(MQCloseCursor(cursor));
    RESULT(MQCloseCursor(cursor), MQ_ERROR_INVALID_HANDLE);
    OK(MQCreateCursor(reader, &other));
    OK(MQCloseQueue(reader)); /* closes its cursors */
    RESULT(MQCloseCursor(other), MQ_ERROR_INVALID_HANDLE);
    OK(receive_text(second, MQ_ACTION_RECEIVE, NULL, NULL, body));
    CHECK(strcmp(body, "a") == 0);
    OK(MQCloseQueue(second));
    OK(MQCloseQueue(sender));
}

static uint64_t lookup_id_of_first(QUEUEHANDLE queue) {
    struct bag bag = {0};
    add(&bag, PROPID_M_LOOKUPID, VT_NULL);
    OK(MQReceiveMessage(queue, 0, MQ_ACTION_PEEK_CURRENT, message(&bag), NULL, NULL, NULL, NULL));
    EQUAL(bag.values[0].vt, VT_UI8);
    return bag.values[0].uhVal;
}

static void moves(void) {
    const WCHAR *name = create("moves", false);
    char body[64];
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS),
                target = opened(u"DIRECT=OS:.\\private$\\moves;later", MQ_MOVE_ACCESS),
                later = opened(u"DIRECT=OS:.\\private$\\moves;later", MQ_RECEIVE_ACCESS);
    OK(send_text(sender, "x", NULL, NULL));
    uint64_t id = lookup_id_of_first(reader);
    RESULT(MQMoveMessage(reader, target, id + 1, NULL), MQ_ERROR_MESSAGE_NOT_FOUND);
    RESULT(MQMoveMessage(sender, target, id, NULL), MQ_ERROR_ACCESS_DENIED);
    RESULT(MQMoveMessage(reader, sender, id, NULL), MQ_ERROR_ACCESS_DENIED);
    RESULT(MQMoveMessage(NOWHERE, target, id, NULL), MQ_ERROR_INVALID_HANDLE);
    RESULT(MQMoveMessage(reader, NOWHERE, id, NULL), MQ_ERROR_INVALID_HANDLE);
    RESULT(MQMoveMessage(reader, target, id, MQ_MTS_TRANSACTION), MQ_ERROR_TRANSACTION_ENLIST);
    OK(MQMoveMessage(reader, target, id, NULL));
    RESULT(receive_text(reader, MQ_ACTION_RECEIVE, NULL, NULL, body), MQ_ERROR_IO_TIMEOUT);
    struct bag bag = {0};
    add(&bag, PROPID_M_MOVE_COUNT, VT_NULL);
    add_u4(&bag, PROPID_M_ABORT_COUNT, 9);
    OK(MQReceiveMessage(later, 0, MQ_ACTION_RECEIVE, message(&bag), NULL, NULL, NULL, NULL));
    EQUAL(bag.values[0].ulVal, 1);
    EQUAL(bag.values[1].ulVal, 0);
    HANDLE all[] = {sender, reader, target, later};
    for (int i = 0; i < 4; i++) OK(MQCloseQueue(all[i]));
}

static void outgoing(void) {
    static const WCHAR far[] = u"DIRECT=OS:far.example\\private$\\x";
    char body[64];
    HANDLE cursor;
    QUEUEHANDLE admin;
    RESULT(MQOpenQueue(far, MQ_RECEIVE_ACCESS | MQ_ADMIN_ACCESS, 0, &admin), MQ_ERROR_QUEUE_NOT_FOUND);
    QUEUEHANDLE sender = opened(far, MQ_SEND_ACCESS);
    OK(send_text(sender, "x", NULL, NULL));
    EQUAL(messages_in(far), 1);
    OK(MQOpenQueue(far, MQ_RECEIVE_ACCESS | MQ_ADMIN_ACCESS, 0, &admin));
    RESULT(receive_text(admin, MQ_ACTION_RECEIVE, NULL, NULL, body), MQ_ERROR_UNSUPPORTED_OPERATION);
    RESULT(MQCreateCursor(admin, &cursor), MQ_ERROR_UNSUPPORTED_OPERATION);
    RESULT(MQMoveMessage(admin, admin, 1, NULL), MQ_ERROR_ACCESS_DENIED);
    OK(MQMgmtAction(NULL, wide("QUEUE=DIRECT=OS:far.example\\private$\\x"), u"PAUSE"));
    OK(MQMgmtAction(u".", wide("QUEUE=DIRECT=OS:far.example\\private$\\x"), u"RESUME"));
    OK(MQPurgeQueue(admin));
    EQUAL(messages_in(far), 0);
    OK(MQCloseQueue(admin));
    OK(MQCloseQueue(sender));
}

const struct test_case QUEUE_CASES[] = {
    {"open_and_close", open_and_close}, {"old_handles", old_handles}, {"access_of_handles", access_of_handles},
    {"names", names},                   {"cursors", cursors},         {"moves", moves},
    {"outgoing", outgoing},             {NULL, NULL},
};
