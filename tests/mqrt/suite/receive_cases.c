/* Receives, peeks and lookups, and buffers that are too small. */
#include "suite.h"

/* A message whose parts have known sizes. */
static void send_sized(QUEUEHANDLE sender) {
    struct bag bag = {0};
    static const uint8_t bytes[100];
    add_bytes(&bag, PROPID_M_BODY, bytes, 100);
    add_text(&bag, PROPID_M_LABEL, u"label");
    add_bytes(&bag, PROPID_M_EXTENSION, bytes, 30);
    add_text(&bag, PROPID_M_RESP_QUEUE, u"DIRECT=OS:a\\private$\\response");
    add_text(&bag, PROPID_M_ADMIN_QUEUE, u"DIRECT=OS:a\\private$\\admin");
    add_u1(&bag, PROPID_M_ACKNOWLEDGE, MQMSG_ACKNOWLEDGMENT_NEG_ARRIVAL); /* without it there is no admin queue */
    add_u1(&bag, PROPID_M_DELIVERY, MQMSG_DELIVERY_RECOVERABLE);
    OK(MQSendMessage(sender, message(&bag), NULL));
}

static const struct part {
    PROPID buffer, length;
    HRESULT error;
    unsigned needed; /* 0: it depends on the caller or on the queue */
} PARTS[] = {
    {PROPID_M_BODY, PROPID_M_BODY_SIZE, MQ_ERROR_BUFFER_OVERFLOW, 100},
    {PROPID_M_LABEL, PROPID_M_LABEL_LEN, MQ_ERROR_LABEL_BUFFER_TOO_SMALL, 6},
    {PROPID_M_EXTENSION, PROPID_M_EXTENSION_LEN, MQ_ERROR_BUFFER_OVERFLOW, 30},
    {PROPID_M_RESP_QUEUE, PROPID_M_RESP_QUEUE_LEN, MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL, 30},
    {PROPID_M_RESP_FORMAT_NAME, PROPID_M_RESP_FORMAT_NAME_LEN, MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL, 30},
    {PROPID_M_ADMIN_QUEUE, PROPID_M_ADMIN_QUEUE_LEN, MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL, 27},
    {PROPID_M_DEST_QUEUE, PROPID_M_DEST_QUEUE_LEN, MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL, 0},
    {PROPID_M_DEST_FORMAT_NAME, PROPID_M_DEST_FORMAT_NAME_LEN, MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL, 0},
    {PROPID_M_SENDERID, PROPID_M_SENDERID_LEN, MQ_ERROR_SENDERID_BUFFER_TOO_SMALL, 0},
};
enum { PART_COUNT = sizeof PARTS / sizeof *PARTS };

static bool is_text(const struct part *part) {
    return part->error != MQ_ERROR_BUFFER_OVERFLOW && part->error != MQ_ERROR_SENDERID_BUFFER_TOO_SMALL;
}

/* A buffer on the heap of exactly this size, so that a byte too many is found. */
static void *buffer_for(struct bag *bag, const struct part *part, unsigned size) {
    void *buffer = malloc(is_text(part) ? 2 * size + 1 : size + 1);
    buffer = realloc(buffer, is_text(part) ? 2 * size + !size : size + !size);
    if (is_text(part)) {
        add_text(bag, part->buffer, buffer);
        add_u4(bag, part->length, size);
    } else {
        add_bytes(bag, part->buffer, buffer, size);
        add_u4(bag, part->length, 0);
    }
    return buffer;
}

static HRESULT read_with(QUEUEHANDLE reader, DWORD action, struct bag *bag, HANDLE cursor, ITransaction *transaction) {
    return MQReceiveMessage(reader, 0, action, message(bag), NULL, NULL, cursor, transaction);
}

/* Each buffer one too short leaves the message, says what it needs, and is then large enough. */
static void short_buffers(void) {
    const WCHAR *name = create("short", false);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS);
    for (const struct part *part = PARTS; part < PARTS + PART_COUNT; part++) {
        send_sized(sender);
        for (unsigned size = 0; size < 3; size++) {
            struct bag bag = {0};
            void *buffer = buffer_for(&bag, part, size);
            RESULT(read_with(reader, MQ_ACTION_RECEIVE, &bag, NULL, NULL), part->error);
            RESULT(bag.statuses[0], part->error);
            if (part->needed != 0) EQUAL(bag.values[1].ulVal, part->needed);
            free(buffer);
        }
        struct bag found = {0};
        add_u4(&found, part->length, 0); /* the length alone needs no buffer */
        OK(read_with(reader, MQ_ACTION_PEEK_CURRENT, &found, NULL, NULL));
        unsigned needed = found.values[0].ulVal;
        struct bag less = {0}, exact = {0};
        void *buffer = buffer_for(&less, part, needed - 1);
        RESULT(read_with(reader, MQ_ACTION_RECEIVE, &less, NULL, NULL), part->error);
        EQUAL(less.values[1].ulVal, needed);
        free(buffer);
        EQUAL(messages_in(name), 1);
        buffer = buffer_for(&exact, part, needed);
        OK(read_with(reader, MQ_ACTION_RECEIVE, &exact, NULL, NULL));
        EQUAL(exact.values[1].ulVal, needed);
        free(buffer);
        EQUAL(messages_in(name), 0);
    }
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
}

/* All lengths come with the first error, so that one more call is enough. */
static void all_lengths_at_once(void) {
    const WCHAR *name = create("lengths", false);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS);
    void *buffers[PART_COUNT];
    struct bag bag = {0}, again = {0};
    send_sized(sender);
    for (int i = 0; i < PART_COUNT; i++) buffers[i] = buffer_for(&bag, &PARTS[i], 1);
    RESULT(read_with(reader, MQ_ACTION_RECEIVE, &bag, NULL, NULL), MQ_ERROR_BUFFER_OVERFLOW);
    for (int i = 0; i < PART_COUNT; i++) {
        RESULT(bag.statuses[2 * i], PARTS[i].error);
        free(buffers[i]);
        buffers[i] = buffer_for(&again, &PARTS[i], bag.values[2 * i + 1].ulVal);
    }
    OK(read_with(reader, MQ_ACTION_RECEIVE, &again, NULL, NULL));
    for (int i = 0; i < PART_COUNT; i++) free(buffers[i]);
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
}

/* After an overflow of PEEK_NEXT, PEEK_CURRENT returns the same message; a receive has not moved the cursor. */
static void overflow_with_cursor(void) {
    const WCHAR *name = create("overflow", false);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS);
    HANDLE cursor;
    char body[64], tiny[2];
    OK(MQCreateCursor(reader, &cursor));
    OK(send_text(sender, "a", NULL, NULL));
    OK(send_text(sender, "second", NULL, NULL));
    OK(receive_text(reader, MQ_ACTION_PEEK_CURRENT, cursor, NULL, body));
    struct bag bag = {0};
    add_bytes(&bag, PROPID_M_BODY, tiny, sizeof tiny);
    RESULT(read_with(reader, MQ_ACTION_PEEK_NEXT, &bag, cursor, NULL), MQ_ERROR_BUFFER_OVERFLOW);
    OK(receive_text(reader, MQ_ACTION_PEEK_CURRENT, cursor, NULL, body));
    CHECK(strcmp(body, "second") == 0);
    RESULT(read_with(reader, MQ_ACTION_RECEIVE, &bag, cursor, NULL), MQ_ERROR_BUFFER_OVERFLOW);
    OK(receive_text(reader, MQ_ACTION_RECEIVE, cursor, NULL, body));
    CHECK(strcmp(body, "second") == 0);
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
}

/* The message of a cursor that another reader has received meanwhile; the next one is not read in its place. */
static void received_meanwhile(void) {
    const WCHAR *name = create("meanwhile", false);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS),
                other = opened(name, MQ_RECEIVE_ACCESS);
    HANDLE cursor;
    char body[64];
    OK(MQCreateCursor(reader, &cursor));
    OK(send_text(sender, "a", NULL, NULL));
    OK(send_text(sender, "b", NULL, NULL));
    read_at(reader, MQ_ACTION_PEEK_CURRENT, cursor, "a");
    OK(receive_text(other, MQ_ACTION_RECEIVE, NULL, NULL, body));
    RESULT(receive_text(reader, MQ_ACTION_PEEK_CURRENT, cursor, NULL, body), MQ_ERROR_MESSAGE_ALREADY_RECEIVED);
    RESULT(receive_text(reader, MQ_ACTION_RECEIVE, cursor, NULL, body), MQ_ERROR_MESSAGE_ALREADY_RECEIVED);
    EQUAL(messages_in(name), 1);
    read_at(reader, MQ_ACTION_PEEK_NEXT, cursor, "b");
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
    OK(MQCloseQueue(other));
}

static void missing_lengths(void) {
    const WCHAR *name = create("missing", false);
    QUEUEHANDLE reader = opened(name, MQ_RECEIVE_ACCESS);
    static const PROPID texts[] = {PROPID_M_LABEL, PROPID_M_RESP_QUEUE, PROPID_M_ADMIN_QUEUE, PROPID_M_DEST_QUEUE,
                                   PROPID_M_PROV_NAME, PROPID_M_XACT_STATUS_QUEUE};
    static const PROPID bytes[] = {PROPID_M_EXTENSION, PROPID_M_SENDERID, PROPID_M_SENDER_CERT, PROPID_M_SIGNATURE,
                                   PROPID_M_DEST_SYMM_KEY};
    WCHAR text[10];
    uint8_t buffer[10];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct bag bag = {0};
        add_text(&bag, texts[i], text);
        RESULT(read_with(reader, MQ_ACTION_PEEK_CURRENT, &bag, NULL, NULL), MQ_ERROR_INSUFFICIENT_PROPERTIES);
    }
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        struct bag bag = {0};
        add_bytes(&bag, bytes[i], buffer, sizeof buffer);
        RESULT(read_with(reader, MQ_ACTION_PEEK_CURRENT, &bag, NULL, NULL), MQ_ERROR_INSUFFICIENT_PROPERTIES);
    }
    struct bag bag = {0};
    add_text(&bag, PROPID_M_LABEL, NULL);
    add_u4(&bag, PROPID_M_LABEL_LEN, 10);
    RESULT(read_with(reader, MQ_ACTION_PEEK_CURRENT, &bag, NULL, NULL), MQ_ERROR_PROPERTY);
    RESULT(bag.statuses[0], MQ_ERROR_ILLEGAL_PROPERTY_VALUE);
    OK(MQCloseQueue(reader));
}

/* Parts that the protocol does not carry are empty and marked, also where a caller has buffers for them. */
static void parts_not_carried(void) {
    const WCHAR *name = create("carried", false);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS);
    uint8_t bytes[3][10];
    WCHAR text[10];
    struct bag bag = {0};
    add_bytes(&bag, PROPID_M_SENDER_CERT, bytes[0], 10);
    add_u4(&bag, PROPID_M_SENDER_CERT_LEN, 7);
    add_bytes(&bag, PROPID_M_SIGNATURE, bytes[1], 10);
    add_u4(&bag, PROPID_M_SIGNATURE_LEN, 7);
    add_bytes(&bag, PROPID_M_DEST_SYMM_KEY, bytes[2], 10);
    add_u4(&bag, PROPID_M_DEST_SYMM_KEY_LEN, 7);
    add_text(&bag, PROPID_M_PROV_NAME, text);
    add_u4(&bag, PROPID_M_PROV_NAME_LEN, 10);
    add_text(&bag, PROPID_M_DEADLETTER_QUEUE, text);
    add_u4(&bag, PROPID_M_DEADLETTER_QUEUE_LEN, 10);
    add(&bag, PROPID_M_HASH_ALG, VT_NULL);
    send_sized(sender);
    RESULT(read_with(reader, MQ_ACTION_RECEIVE, &bag, NULL, NULL), MQ_INFORMATION_PROPERTY);
    for (int i = 0; i < 10; i += 2) {
        RESULT(bag.statuses[i], MQ_INFORMATION_UNSUPPORTED_PROPERTY);
        EQUAL(bag.values[i + 1].ulVal, 0);
    }
    EQUAL(bag.values[10].vt, VT_UI4);
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
}

static void check_transaction(QUEUEHANDLE reader, unsigned first, unsigned last, uint8_t xact[20]) {
    struct bag bag = {0};
    uint8_t id[20];
    memset(xact, 0xEE, 20);
    add_bytes(&bag, PROPID_M_XACTID, xact, 20);
    add(&bag, PROPID_M_FIRST_IN_XACT, VT_NULL);
    add(&bag, PROPID_M_LAST_IN_XACT, VT_NULL);
    add_bytes(&bag, PROPID_M_MSGID, id, 20);
    OK(read_with(reader, MQ_ACTION_RECEIVE, &bag, NULL, NULL));
    EQUAL(bag.values[1].bVal, first);
    EQUAL(bag.values[2].bVal, last);
    if (first + last > 0) CHECK(memcmp(xact, id, 16) == 0); /* the GUID of the source */
}

/* The transaction of a received message, and whether it is its first or last message to the queue. */
static void transactions_of_messages(void) {
    static const uint8_t none[20];
    QUEUEHANDLE sender = opened(create("grouped", true), MQ_SEND_ACCESS);
    QUEUEHANDLE reader = opened(wide("DIRECT=OS:.\\private$\\grouped"), MQ_RECEIVE_ACCESS);
    uint8_t one[20], two[20], single[20];
    ITransaction *transaction;
    OK(MQBeginTransaction(&transaction));
    OK(send_text(sender, "one", NULL, transaction));
    OK(send_text(sender, "two", NULL, transaction));
    OK(ITransaction_Commit(transaction, FALSE, 0, 0));
    ITransaction_Release(transaction);
    OK(send_text(sender, "single", NULL, MQ_SINGLE_MESSAGE));
    check_transaction(reader, MQMSG_FIRST_IN_XACT, MQMSG_NOT_LAST_IN_XACT, one);
    check_transaction(reader, MQMSG_NOT_FIRST_IN_XACT, MQMSG_LAST_IN_XACT, two);
    check_transaction(reader, MQMSG_FIRST_IN_XACT, MQMSG_LAST_IN_XACT, single);
    CHECK(memcmp(one, two, 20) == 0);
    CHECK(memcmp(one, single, 20) != 0);
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
    sender = opened(create("alone", false), MQ_SEND_ACCESS);
    reader = opened(wide("DIRECT=OS:.\\private$\\alone"), MQ_RECEIVE_ACCESS);
    OK(send_text(sender, "alone", NULL, NULL));
    check_transaction(reader, MQMSG_NOT_FIRST_IN_XACT, MQMSG_NOT_LAST_IN_XACT, one);
    CHECK(memcmp(one, none, 20) == 0);
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
}

static void lookups(void) {
    const WCHAR *name = create("lookups", false);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS),
                peeker = opened(name, MQ_PEEK_ACCESS);
    for (const char *text = "abcdef"; *text != 0; text++) OK(send_text(sender, (char[]){*text, 0}, NULL, NULL));
    uint64_t a = lookup(peeker, 0, MQ_LOOKUP_PEEK_FIRST, MQ_OK, "a");
    uint64_t b = lookup(peeker, a, MQ_LOOKUP_PEEK_NEXT, MQ_OK, "b");
    lookup(peeker, b, MQ_LOOKUP_PEEK_CURRENT, MQ_OK, "b");
    lookup(peeker, b, MQ_LOOKUP_PEEK_PREV, MQ_OK, "a");
    lookup(peeker, 0, MQ_LOOKUP_PEEK_LAST, MQ_OK, "f");
    lookup(peeker, a, MQ_LOOKUP_PEEK_PREV, MQ_ERROR_MESSAGE_NOT_FOUND, NULL);
    lookup(peeker, a, MQ_LOOKUP_RECEIVE_CURRENT, MQ_ERROR_ACCESS_DENIED, NULL);
    lookup(reader, b, MQ_LOOKUP_RECEIVE_CURRENT, MQ_OK, "b");
    lookup(reader, b, MQ_LOOKUP_RECEIVE_CURRENT, MQ_ERROR_MESSAGE_NOT_FOUND, NULL);
    uint64_t c = lookup(reader, a, MQ_LOOKUP_RECEIVE_NEXT, MQ_OK, "c");
    lookup(reader, c, MQ_LOOKUP_RECEIVE_PREV, MQ_ERROR_MESSAGE_NOT_FOUND, NULL); /* c itself is gone */
    uint64_t d = lookup(reader, a, MQ_LOOKUP_PEEK_NEXT, MQ_OK, "d");
    lookup(reader, d, MQ_LOOKUP_RECEIVE_PREV, MQ_OK, "a");
    lookup(reader, 0, MQ_LOOKUP_RECEIVE_FIRST, MQ_OK, "d");
    lookup(reader, 0, MQ_LOOKUP_RECEIVE_LAST, MQ_OK, "f");
    uint64_t e = lookup(peeker, 0, MQ_LOOKUP_PEEK_FIRST, MQ_OK, "e");
    lookup(reader, e, MQ_LOOKUP_RECEIVE_ALLOW_PEEK, MQ_OK, "e");
    static const DWORD wrong[] = {0, 0x40000000, 0x40000013, 0x40000018 + 0x20, 0x40000110, 0x80000010, 0xFFFFFFFF};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        lookup(reader, e, wrong[i], MQ_ERROR_INVALID_PARAMETER, NULL);
    char tiny[1];
    struct bag bag = {0};
    OK(send_text(sender, "large", NULL, NULL));
    add_bytes(&bag, PROPID_M_BODY, tiny, 1);
    RESULT(MQReceiveMessageByLookupId(reader, 0, MQ_LOOKUP_RECEIVE_FIRST, message(&bag), NULL, NULL, NULL),
           MQ_ERROR_BUFFER_OVERFLOW);
    lookup(reader, 0, MQ_LOOKUP_RECEIVE_FIRST, MQ_OK, "large");
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
    OK(MQCloseQueue(peeker));
}

static void parameters(void) {
    const WCHAR *name = create("parameters", false);
    QUEUEHANDLE reader = opened(name, MQ_RECEIVE_ACCESS);
    char body[64];
    OVERLAPPED overlapped = {0};
    RESULT(MQReceiveMessage(reader, 0, 7, NULL, NULL, NULL, NULL, NULL), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQReceiveMessage(reader, 0, MQ_ACTION_RECEIVE, NULL, NULL, NULL, NULL, NULL), MQ_ERROR_IO_TIMEOUT);
    RESULT(MQReceiveMessage(reader, 10, MQ_ACTION_PEEK_CURRENT, NULL, NULL, NULL, NULL, NULL), MQ_ERROR_IO_TIMEOUT);
    RESULT(MQReceiveMessage(NULL, 0, MQ_ACTION_RECEIVE, NULL, NULL, NULL, NULL, NULL), MQ_ERROR_INVALID_HANDLE);
    RESULT(receive_text(reader, MQ_ACTION_PEEK_CURRENT, NULL, MQ_SINGLE_MESSAGE, body), MQ_ERROR_TRANSACTION_USAGE);
    RESULT(receive_text(reader, MQ_ACTION_RECEIVE, NULL, MQ_MTS_TRANSACTION, body), MQ_ERROR_TRANSACTION_ENLIST);
    /* nothing would ever signal the event of an OVERLAPPED here */
    RESULT(MQReceiveMessage(reader, INFINITE, MQ_ACTION_RECEIVE, NULL, &overlapped, NULL, NULL, NULL),
           MQ_ERROR_OPERATION_CANCELLED);
    OK(MQCloseQueue(reader));
}

const struct test_case RECEIVE_CASES[] = {
    {"short_buffers", short_buffers},     {"all_lengths_at_once", all_lengths_at_once},
    {"overflow_with_cursor", overflow_with_cursor}, {"missing_lengths", missing_lengths},
    {"received_meanwhile", received_meanwhile},
    {"parts_not_carried", parts_not_carried},       {"lookups", lookups},
    {"parameters", parameters},           {"transactions_of_messages", transactions_of_messages},
    {NULL, NULL},
};
