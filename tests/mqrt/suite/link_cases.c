/* Cases that stop and start the server: the program around the suite does so when it is asked. */
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

static void reconnect(void) {
    const WCHAR *name = create("reconnected", true);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS);
    ITransaction *transaction, *unused;
    HANDLE cursor;
    char body[64];
    OK(send_text(sender, "kept", NULL, MQ_SINGLE_MESSAGE));
    OK(MQCreateCursor(reader, &cursor));
    OK(MQBeginTransaction(&transaction));
    OK(MQBeginTransaction(&unused));
    OK(receive_text(reader, MQ_ACTION_RECEIVE, NULL, transaction, body));
    OK(send_text(sender, "lost", NULL, transaction));
    ask("kill");
    RESULT(send_text(sender, "x", NULL, MQ_SINGLE_MESSAGE), MQ_ERROR_STALE_HANDLE);
    QUEUEHANDLE none;
    RESULT(MQOpenQueue(name, MQ_SEND_ACCESS, 0, &none), MQ_ERROR_SERVICE_NOT_AVAILABLE);
    RESULT(MQBeginTransaction(&(ITransaction *){NULL}), MQ_ERROR_SERVICE_NOT_AVAILABLE);
    RESULT(MQDeleteQueue(name), MQ_ERROR_SERVICE_NOT_AVAILABLE);
    ask("start");
    RESULT(receive_text(reader, MQ_ACTION_RECEIVE, NULL, NULL, body), MQ_ERROR_STALE_HANDLE);
    QUEUEHANDLE fresh = opened(name, MQ_SEND_ACCESS);
    RESULT(send_text(sender, "x", NULL, MQ_SINGLE_MESSAGE), MQ_ERROR_STALE_HANDLE);
    RESULT(receive_text(reader, MQ_ACTION_PEEK_CURRENT, cursor, NULL, body), MQ_ERROR_STALE_HANDLE);
    RESULT(MQPurgeQueue(reader), MQ_ERROR_STALE_HANDLE);
    RESULT(MQCreateCursor(reader, &none), MQ_ERROR_STALE_HANDLE);
    RESULT(send_text(fresh, "x", NULL, transaction), MQ_ERROR_TRANSACTION_SEQUENCE);
    RESULT(ITransaction_Commit(transaction, FALSE, 0, 0), XACT_E_ABORTED);
    RESULT(ITransaction_Commit(transaction, FALSE, 0, 0), XACT_E_NOTRANSACTION);
    EQUAL(ITransaction_Release(transaction), 0);
    OK(ITransaction_Abort(unused, NULL, FALSE, FALSE)); /* it is aborted, as the caller wants */
    EQUAL(ITransaction_Release(unused), 0);
    EQUAL(messages_in(name), 1);
    OK(MQCloseCursor(cursor));
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
    OK(send_text(fresh, "again", NULL, MQ_SINGLE_MESSAGE));
    EQUAL(messages_in(name), 2);
    OK(MQCloseQueue(fresh));
}

/* The lookup id of the first message after a place; its body must be `body`. Lookup ids grow in the order of the queue. */
static uint64_t after(QUEUEHANDLE reader, uint64_t place, const char *passed, const char *body) {
    HANDLE cursor;
    uint64_t id = 0;
    OK(MQCreateCursor(reader, &cursor));
    for (DWORD action = MQ_ACTION_PEEK_CURRENT; *passed != 0; action = MQ_ACTION_PEEK_NEXT) {
        id = read_at(reader, action, cursor, (char[]){*passed++, 0});
        CHECK(id <= place);
    }
    id = read_at(reader, id == 0 ? MQ_ACTION_PEEK_CURRENT : MQ_ACTION_PEEK_NEXT, cursor, body);
    CHECK(id > place);
    OK(MQCloseCursor(cursor));
    return id;
}

/* A pass over a queue while the server is killed. A cursor ends with its connection; a program that keeps the lookup id
 * of the last message continues behind it, also when this message is no longer in the queue. */
static void walk(void) {
    const WCHAR *name = create("walked", true);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS);
    HANDLE cursor;
    char body[64];
    for (char text[] = "a"; text[0] <= 'd'; text[0]++) OK(send_text(sender, text, NULL, MQ_SINGLE_MESSAGE));
    OK(MQCreateCursor(reader, &cursor));
    read_at(reader, MQ_ACTION_PEEK_CURRENT, cursor, "a");
    uint64_t place = read_at(reader, MQ_ACTION_PEEK_NEXT, cursor, "b");
    ask("kill");
    ask("start");
    RESULT(receive_text(reader, MQ_ACTION_PEEK_NEXT, cursor, NULL, body), MQ_ERROR_STALE_HANDLE);
    OK(MQCloseQueue(reader));
    OK(MQCloseQueue(sender));
    reader = opened(name, MQ_RECEIVE_ACCESS);
    place = lookup(reader, place, MQ_LOOKUP_PEEK_NEXT, MQ_OK, "c");
    lookup(reader, place, MQ_LOOKUP_RECEIVE_CURRENT, MQ_OK, "c");
    ask("kill");
    ask("start");
    OK(MQCloseQueue(reader));
    reader = opened(name, MQ_RECEIVE_ACCESS);
    lookup(reader, place, MQ_LOOKUP_PEEK_NEXT, MQ_ERROR_MESSAGE_NOT_FOUND, NULL);
    place = after(reader, place, "ab", "d");
    lookup(reader, place, MQ_LOOKUP_PEEK_NEXT, MQ_ERROR_MESSAGE_NOT_FOUND, NULL);
    EQUAL(messages_in(name), 3);
    OK(MQCloseQueue(reader));
}

static void ended(HRESULT result, QUEUEHANDLE queue, DWORD timeout, DWORD action, MQMSGPROPS *props,
                  LPOVERLAPPED overlapped, HANDLE cursor) {
    (void)queue;
    (void)timeout;
    (void)action;
    (void)props;
    (void)cursor;
    RESULT(result, MQ_ERROR_SERVICE_NOT_AVAILABLE);
    __atomic_store_n(&overlapped->InternalHigh, 1, __ATOMIC_RELEASE);
}

/* A call that waits while the server is killed ends with an error, and so does one with a callback. */
static void killed_while_waiting(void) {
    const WCHAR *name = create("waiting", false);
    QUEUEHANDLE reader = opened(name, MQ_RECEIVE_ACCESS);
    OVERLAPPED overlapped = {0};
    RESULT(MQReceiveMessage(reader, INFINITE, MQ_ACTION_RECEIVE, NULL, &overlapped, ended, NULL, NULL),
           MQ_INFORMATION_OPERATION_PENDING);
    printf("kill_later\n"); /* without waiting for it */
    fflush(stdout);
    RESULT(MQReceiveMessage(reader, INFINITE, MQ_ACTION_PEEK_CURRENT, NULL, NULL, NULL, NULL, NULL),
           MQ_ERROR_SERVICE_NOT_AVAILABLE);
    while (__atomic_load_n(&overlapped.InternalHigh, __ATOMIC_ACQUIRE) == 0) usleep(1000);
    RESULT(MQGetOverlappedResult(&overlapped), MQ_ERROR_SERVICE_NOT_AVAILABLE);
    OK(MQCloseQueue(reader));
}

/* The child of a fork has a connection of its own, and the parent keeps its one. */
static void forked(void) {
    const WCHAR *name = create("forked", false);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS);
    pid_t child = fork();
    if (child == 0) {
        RESULT(send_text(sender, "x", NULL, NULL), MQ_ERROR_STALE_HANDLE);
        QUEUEHANDLE own = opened(name, MQ_SEND_ACCESS);
        OK(send_text(own, "of the child", NULL, NULL));
        _exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    EQUAL(status, 0);
    OK(send_text(sender, "of the parent", NULL, NULL));
    EQUAL(messages_in(name), 2);
    OK(MQCloseQueue(sender));
}

/* For servers over TCP and TLS: enough calls to see that the stream works both ways, with large messages. */
static void stream(void) {
    char name[32];
    snprintf(name, sizeof name, "stream%d", (int)getpid());
    const WCHAR *queue = create(name, false);
    QUEUEHANDLE sender = opened(queue, MQ_SEND_ACCESS), reader = opened(queue, MQ_RECEIVE_ACCESS);
    size_t size = 1 << 20;
    uint8_t *body = calloc(1, size), *found = calloc(1, size);
    for (size_t i = 0; i < size; i++) body[i] = (uint8_t)(i * 31);
    struct bag bag = {0};
    add_bytes(&bag, PROPID_M_BODY, body, size);
    for (int i = 0; i < 3; i++) OK(MQSendMessage(sender, message(&bag), NULL));
    bag.values[0].caub.pElems = found;
    for (int i = 0; i < 3; i++)
        OK(MQReceiveMessage(reader, 5000, MQ_ACTION_RECEIVE, message(&bag), NULL, NULL, NULL, NULL));
    CHECK(memcmp(body, found, size) == 0);
    free(body);
    free(found);
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
}

static void notified(HRESULT result, QUEUEHANDLE queue, DWORD timeout, DWORD action, MQMSGPROPS *props,
                     LPOVERLAPPED overlapped, HANDLE cursor) {
    (void)queue;
    (void)timeout;
    (void)action;
    (void)cursor;
    OK(result);
    EQUAL(props->aPropVar[1].ulVal, 5);
    __atomic_store_n(&overlapped->InternalHigh, 1, __ATOMIC_RELEASE);
}

/* A queue of another computer: the server has no limits of size for it, the library keeps the rules all the same. */
static void remote(void) {
    QUEUEHANDLE reader = opened(u"DIRECT=TCP:127.0.0.2\\private$\\orders", MQ_RECEIVE_ACCESS);
    char body[64], tiny[2];
    WCHAR label[64];
    HANDLE cursor;
    ITransaction *transaction;
    struct bag bag = {0}, full = {0}, later = {0};
    OVERLAPPED overlapped = {0};
    RESULT(receive_text(reader, MQ_ACTION_RECEIVE, NULL, NULL, body), MQ_ERROR_IO_TIMEOUT);
    ask("send first"); /* with the label "first" */
    ask("send second");
    add_bytes(&bag, PROPID_M_BODY, tiny, sizeof tiny);
    add_u4(&bag, PROPID_M_BODY_SIZE, 0);
    add_text(&bag, PROPID_M_LABEL, label);
    add_u4(&bag, PROPID_M_LABEL_LEN, 3);
    for (int i = 0; i < 2; i++) { /* it stays */
        value_of(&bag, PROPID_M_LABEL_LEN)->ulVal = 3;
        RESULT(MQReceiveMessage(reader, 1000, MQ_ACTION_RECEIVE, message(&bag), NULL, NULL, NULL, NULL),
               MQ_ERROR_BUFFER_OVERFLOW);
        EQUAL(value_of(&bag, PROPID_M_BODY_SIZE)->ulVal, 5);
        EQUAL(value_of(&bag, PROPID_M_LABEL_LEN)->ulVal, 6);
        RESULT(status_of(&bag, PROPID_M_LABEL), MQ_ERROR_LABEL_BUFFER_TOO_SMALL);
    }
    add_bytes(&full, PROPID_M_BODY, body, 63);
    add_u4(&full, PROPID_M_BODY_SIZE, 0);
    add_text(&full, PROPID_M_LABEL, label);
    add_u4(&full, PROPID_M_LABEL_LEN, 64);
    OK(MQReceiveMessage(reader, 1000, MQ_ACTION_RECEIVE, message(&full), NULL, NULL, NULL, NULL));
    CHECK(memcmp(body, "first", 5) == 0 && same(label, "first"));
    OK(MQCreateCursor(reader, &cursor));
    OK(receive_text(reader, MQ_ACTION_PEEK_CURRENT, cursor, NULL, body));
    CHECK(strcmp(body, "second") == 0);
    struct bag small = {0};
    add_bytes(&small, PROPID_M_BODY, tiny, sizeof tiny);
    RESULT(MQReceiveMessage(reader, 0, MQ_ACTION_RECEIVE, message(&small), NULL, NULL, cursor, NULL),
           MQ_ERROR_BUFFER_OVERFLOW);
    OK(receive_text(reader, MQ_ACTION_RECEIVE, cursor, NULL, body));
    CHECK(strcmp(body, "second") == 0);
    OK(MQBeginTransaction(&transaction));
    RESULT(receive_text(reader, MQ_ACTION_RECEIVE, NULL, transaction, body), MQ_ERROR_TRANSACTION_ENLIST);
    EQUAL(ITransaction_Release(transaction), 0);
    add_bytes(&later, PROPID_M_BODY, body, 63);
    add_u4(&later, PROPID_M_BODY_SIZE, 0);
    RESULT(MQReceiveMessage(reader, INFINITE, MQ_ACTION_RECEIVE, message(&later), &overlapped, notified, NULL, NULL),
           MQ_INFORMATION_OPERATION_PENDING);
    ask("send third");
    while (__atomic_load_n(&overlapped.InternalHigh, __ATOMIC_ACQUIRE) == 0) usleep(1000);
    ask("send fourth");
    RESULT(MQReceiveMessageByLookupId(reader, 0, MQ_LOOKUP_RECEIVE_FIRST, message(&small), NULL, NULL, NULL),
           MQ_ERROR_BUFFER_OVERFLOW);
    OK(MQReceiveMessageByLookupId(reader, 0, MQ_LOOKUP_RECEIVE_FIRST, message(&later), NULL, NULL, NULL));
    CHECK(memcmp(body, "fourth", 6) == 0);
    OK(MQPurgeQueue(reader));
    OK(MQCloseQueue(reader));
}

static void refused(void) {
    QUEUEHANDLE queue = NULL;
    HRESULT result = MQOpenQueue(u"DIRECT=OS:.\\private$\\x", MQ_SEND_ACCESS, 0, &queue);
    printf("0x%08X\n", (uint32_t)result);
}

const struct test_case LINK_CASES[] = {
    {"reconnect", reconnect}, {"killed_while_waiting", killed_while_waiting}, {"forked", forked},
    {"stream", stream},       {"refused", refused},                           {"remote", remote},
    {"walk", walk},
    {NULL, NULL},
};
