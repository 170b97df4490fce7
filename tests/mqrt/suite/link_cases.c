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

static void refused(void) {
    QUEUEHANDLE queue = NULL;
    HRESULT result = MQOpenQueue(u"DIRECT=OS:.\\private$\\x", MQ_SEND_ACCESS, 0, &queue);
    printf("0x%08X\n", (uint32_t)result);
}

const struct test_case LINK_CASES[] = {
    {"reconnect", reconnect}, {"killed_while_waiting", killed_while_waiting}, {"forked", forked},
    {"stream", stream},       {"refused", refused},                           {NULL, NULL},
};
