/* Callbacks and threads. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "suite.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int calls;
static HRESULT last_result;
static QUEUEHANDLE last_queue;

static void reset(void) {
    pthread_mutex_lock(&lock);
    calls = 0;
    pthread_mutex_unlock(&lock);
}

/* Waits until there were `wanted` calls; returns the result of the last one. */
static HRESULT called(int wanted) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&lock);
    int late = 0;
    while (calls < wanted && late == 0) late = pthread_cond_timedwait(&changed, &lock, &until);
    EQUAL(calls, wanted);
    HRESULT result = last_result;
    pthread_mutex_unlock(&lock);
    return result;
}

static void callback(HRESULT result, QUEUEHANDLE queue, DWORD timeout, DWORD action, MQMSGPROPS *props,
                     LPOVERLAPPED overlapped, HANDLE cursor) {
    (void)timeout;
    (void)action;
    (void)props;
    (void)overlapped;
    (void)cursor;
    pthread_mutex_lock(&lock);
    calls++;
    last_result = result;
    last_queue = queue;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void callbacks(void) {
    const WCHAR *name = create("callbacks", false);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS);
    static char body[64];
    static struct bag bag;
    OVERLAPPED overlapped = {0};
    ITransaction *transaction;
    bag.count = 0;
    add_bytes(&bag, PROPID_M_BODY, body, 63);
    reset();
    RESULT(MQReceiveMessage(reader, INFINITE, MQ_ACTION_RECEIVE, message(&bag), &overlapped, callback, NULL, NULL),
           MQ_INFORMATION_OPERATION_PENDING);
    RESULT(MQGetOverlappedResult(&overlapped), MQ_INFORMATION_OPERATION_PENDING);
    OK(send_text(sender, "hello", NULL, NULL));
    OK(called(1));
    CHECK(last_queue == reader && memcmp(body, "hello", 5) == 0);
    RESULT(MQGetOverlappedResult(&overlapped), MQ_OK);
    RESULT(MQGetOverlappedResult(NULL), MQ_ERROR_INVALID_PARAMETER);

    reset();
    RESULT(MQReceiveMessage(reader, 20, MQ_ACTION_RECEIVE, NULL, NULL, callback, NULL, NULL),
           MQ_INFORMATION_OPERATION_PENDING);
    RESULT(called(1), MQ_ERROR_IO_TIMEOUT);

    OK(send_text(sender, "looked up", NULL, NULL));
    reset();
    RESULT(MQReceiveMessageByLookupId(reader, 0, MQ_LOOKUP_RECEIVE_FIRST, NULL, NULL, callback, NULL),
           MQ_INFORMATION_OPERATION_PENDING);
    OK(called(1));

    OK(MQBeginTransaction(&transaction));
    RESULT(MQReceiveMessage(reader, 0, MQ_ACTION_RECEIVE, NULL, NULL, callback, NULL, transaction),
           MQ_ERROR_INVALID_PARAMETER);
    EQUAL(ITransaction_Release(transaction), 0);

    OK(send_text(sender, "larger than that", NULL, NULL));
    bag.values[0].caub.cElems = 3;
    reset();
    RESULT(MQReceiveMessage(reader, 0, MQ_ACTION_RECEIVE, message(&bag), NULL, callback, NULL, NULL),
           MQ_INFORMATION_OPERATION_PENDING);
    RESULT(called(1), MQ_ERROR_BUFFER_OVERFLOW);
    RESULT(bag.statuses[0], MQ_ERROR_BUFFER_OVERFLOW);
    OK(MQPurgeQueue(reader));

    reset(); /* closing the queue ends what waits */
    RESULT(MQReceiveMessage(reader, INFINITE, MQ_ACTION_PEEK_CURRENT, NULL, NULL, callback, NULL, NULL),
           MQ_INFORMATION_OPERATION_PENDING);
    OK(MQCloseQueue(reader));
    RESULT(called(1), MQ_ERROR_OPERATION_CANCELLED);
    OK(MQCloseQueue(sender));
}

static const WCHAR *chained;

/* As System.Messaging does: the callback of a peek receives the message, and begins the next peek. */
static void receive_and_peek_again(HRESULT result, QUEUEHANDLE queue, DWORD timeout, DWORD action, MQMSGPROPS *props,
                                   LPOVERLAPPED overlapped, HANDLE cursor) {
    char body[64];
    if (result == MQ_OK) {
        OK(receive_text(queue, MQ_ACTION_RECEIVE, NULL, NULL, body));
        HRESULT next =
            MQReceiveMessage(queue, timeout, action, props, overlapped, receive_and_peek_again, cursor, NULL);
        RESULT(next, MQ_INFORMATION_OPERATION_PENDING);
    }
    callback(result, queue, timeout, action, props, overlapped, cursor);
}

static void calls_in_callbacks(void) {
    chained = create("chained", false);
    QUEUEHANDLE sender = opened(chained, MQ_SEND_ACCESS), reader = opened(chained, MQ_RECEIVE_ACCESS);
    reset();
    RESULT(MQReceiveMessage(reader, INFINITE, MQ_ACTION_PEEK_CURRENT, NULL, NULL, receive_and_peek_again, NULL,
                            NULL),
           MQ_INFORMATION_OPERATION_PENDING);
    for (int i = 0; i < 50; i++) OK(send_text(sender, "x", NULL, NULL));
    OK(called(50));
    OK(MQCloseQueue(reader));
    RESULT(called(51), MQ_ERROR_OPERATION_CANCELLED);
    EQUAL(messages_in(chained), 0);
    OK(MQCloseQueue(sender));
}

/* ---- threads */

enum { THREADS = 4, EACH = 50 };
static const WCHAR *shared;

static void *send_many(void *queue) {
    for (int i = 0; i < EACH; i++) OK(send_text(queue, "x", u"from a thread", NULL));
    return NULL;
}

static void *receive_many(void *queue) {
    for (int i = 0; i < EACH; i++)
        OK(MQReceiveMessage(queue, 20000, MQ_ACTION_RECEIVE, NULL, NULL, NULL, NULL, NULL));
    return NULL;
}

static void *open_many(void *unused) {
    (void)unused;
    for (int i = 0; i < EACH; i++) {
        HANDLE queue = opened(shared, MQ_RECEIVE_ACCESS), cursor;
        OK(MQCreateCursor(queue, &cursor));
        OK(MQCloseQueue(queue));
    }
    return NULL;
}

static void *commit_many(void *queue) {
    for (int i = 0; i < EACH; i++) {
        ITransaction *transaction;
        OK(MQBeginTransaction(&transaction));
        OK(send_text(queue, "x", NULL, transaction));
        OK(i % 2 ? ITransaction_Commit(transaction, FALSE, 0, 0)
                 : ITransaction_Abort(transaction, NULL, FALSE, FALSE));
        EQUAL(ITransaction_Release(transaction), 0);
    }
    return NULL;
}

static void threads(void) {
    shared = create("shared", false);
    const WCHAR *transactional = create("shared_xact", true);
    QUEUEHANDLE sender = opened(shared, MQ_SEND_ACCESS), reader = opened(shared, MQ_RECEIVE_ACCESS),
                committer = opened(transactional, MQ_SEND_ACCESS);
    static void *(*const work[])(void *) = {send_many, receive_many, open_many, commit_many};
    void *arguments[] = {sender, reader, NULL, committer};
    pthread_t running[THREADS * 4];
    for (int i = 0; i < THREADS * 4; i++) EQUAL(pthread_create(&running[i], NULL, work[i % 4], arguments[i % 4]), 0);
    for (int i = 0; i < THREADS * 4; i++) EQUAL(pthread_join(running[i], NULL), 0);
    EQUAL(messages_in(shared), 0);
    EQUAL(messages_in(transactional), THREADS * EACH / 2);
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
    OK(MQCloseQueue(committer));
}

static void *wait_for_message(void *queue) {
    HRESULT result = MQReceiveMessage(queue, INFINITE, MQ_ACTION_RECEIVE, NULL, NULL, NULL, NULL, NULL);
    CHECK(result == MQ_ERROR_OPERATION_CANCELLED || result == MQ_ERROR_INVALID_HANDLE);
    return NULL;
}

static void close_while_waiting(void) {
    const WCHAR *name = create("closing", false);
    QUEUEHANDLE reader = opened(name, MQ_RECEIVE_ACCESS);
    pthread_t waiting[THREADS];
    for (int i = 0; i < THREADS; i++) EQUAL(pthread_create(&waiting[i], NULL, wait_for_message, reader), 0);
    sched_yield(); /* some of them wait now, or none: each has one of the two results */
    OK(MQCloseQueue(reader));
    for (int i = 0; i < THREADS; i++) EQUAL(pthread_join(waiting[i], NULL), 0);
}

const struct test_case ASYNC_CASES[] = {
    {"callbacks", callbacks}, {"calls_in_callbacks", calls_in_callbacks}, {"threads", threads},
    {"close_while_waiting", close_while_waiting}, {NULL, NULL},
};
