#include "suite.h"

static const IID UNKNOWN = {0, 0, 0, {0xC0, 0, 0, 0, 0, 0, 0, 0x46}};
static const IID TRANSACTION = {0x0FB15084, 0xAF41, 0x11CE, {0xBD, 0x2B, 0x20, 0x4C, 0x4F, 0x4F, 0x50, 0x20}};
static const IID OTHER = {1, 2, 3, {4}};

static void the_object(void) {
    ITransaction *transaction, *same_object;
    XACTTRANSINFO info = {0};
    RESULT(MQBeginTransaction(NULL), MQ_ERROR_INVALID_PARAMETER);
    OK(MQBeginTransaction(&transaction));
    OK(ITransaction_QueryInterface(transaction, &UNKNOWN, (void **)&same_object));
    CHECK(same_object == transaction);
    OK(ITransaction_QueryInterface(transaction, &TRANSACTION, (void **)&same_object));
    CHECK(same_object == transaction);
    RESULT(ITransaction_QueryInterface(transaction, &OTHER, (void **)&same_object), E_NOINTERFACE);
    CHECK(same_object == NULL);
    RESULT(ITransaction_QueryInterface(transaction, &OTHER, NULL), E_POINTER);
    EQUAL(ITransaction_AddRef(transaction), 4);
    for (ULONG left = 3; left > 0; left--) EQUAL(ITransaction_Release(transaction), left);
    OK(ITransaction_GetTransactionInfo(transaction, &info));
    CHECK(info.uow.rgb[0] != 0 || info.uow.rgb[1] != 0 || info.uow.rgb[2] != 0);
    RESULT(ITransaction_GetTransactionInfo(transaction, NULL), E_POINTER);
    RESULT(ITransaction_Commit(transaction, TRUE, 0, 0), XACT_E_CANTRETAIN);
    RESULT(ITransaction_Abort(transaction, NULL, TRUE, FALSE), XACT_E_CANTRETAIN);
    RESULT(ITransaction_Abort(transaction, NULL, FALSE, TRUE), XACT_E_NOASYNC);
    OK(ITransaction_Commit(transaction, FALSE, 0, 0));
    RESULT(ITransaction_Commit(transaction, FALSE, 0, 0), XACT_E_NOTRANSACTION);
    RESULT(ITransaction_Abort(transaction, NULL, FALSE, FALSE), XACT_E_NOTRANSACTION);
    EQUAL(ITransaction_Release(transaction), 0);
}

static void commit_and_abort(void) {
    const WCHAR *name = create("committed", true);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS);
    ITransaction *transaction;
    char body[64];
    OK(MQBeginTransaction(&transaction));
    OK(send_text(sender, "1", NULL, transaction));
    OK(send_text(sender, "2", NULL, transaction));
    EQUAL(messages_in(name), 0);
    OK(ITransaction_Commit(transaction, FALSE, 0, 0));
    RESULT(send_text(sender, "late", NULL, transaction), MQ_ERROR_TRANSACTION_SEQUENCE);
    EQUAL(ITransaction_Release(transaction), 0);
    RESULT(send_text(sender, "gone", NULL, transaction), MQ_ERROR_TRANSACTION_ENLIST); /* only its address is known */
    EQUAL(messages_in(name), 2);

    OK(MQBeginTransaction(&transaction));
    OK(receive_text(reader, MQ_ACTION_RECEIVE, NULL, transaction, body));
    CHECK(strcmp(body, "1") == 0);
    RESULT(receive_text(reader, MQ_ACTION_PEEK_CURRENT, NULL, transaction, body), MQ_ERROR_TRANSACTION_USAGE);
    OK(ITransaction_Abort(transaction, NULL, FALSE, FALSE));
    EQUAL(ITransaction_Release(transaction), 0);
    EQUAL(messages_in(name), 2);

    OK(MQBeginTransaction(&transaction));
    OK(receive_text(reader, MQ_ACTION_RECEIVE, NULL, transaction, body));
    EQUAL(ITransaction_Release(transaction), 0); /* aborts */
    struct bag bag = {0};
    add(&bag, PROPID_M_ABORT_COUNT, VT_NULL);
    OK(MQReceiveMessage(reader, 0, MQ_ACTION_PEEK_CURRENT, message(&bag), NULL, NULL, NULL, NULL));
    EQUAL(bag.values[0].ulVal, 2);

    OK(MQBeginTransaction(&transaction));
    OK(MQReceiveMessageByLookupId(reader, 0, MQ_LOOKUP_RECEIVE_FIRST, NULL, NULL, NULL, transaction));
    char tiny[1];
    struct bag large = {0};
    add_bytes(&large, PROPID_M_BODY, tiny, 0);
    RESULT(MQReceiveMessage(reader, 0, MQ_ACTION_RECEIVE, message(&large), NULL, NULL, NULL, transaction),
           MQ_ERROR_BUFFER_OVERFLOW); /* leaves the message also here */
    OK(receive_text(reader, MQ_ACTION_RECEIVE, NULL, transaction, body));
    OK(ITransaction_Commit(transaction, FALSE, 0, 0));
    EQUAL(ITransaction_Release(transaction), 0);
    EQUAL(messages_in(name), 0);
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
}

static void kinds_of_transactions(void) {
    const WCHAR *transactional = create("kinds", true), *plain = create("kindless", false);
    QUEUEHANDLE sender = opened(transactional, MQ_SEND_ACCESS), other = opened(plain, MQ_SEND_ACCESS),
                reader = opened(transactional, MQ_RECEIVE_ACCESS);
    ITransaction *transaction;
    char body[64];
    RESULT(send_text(sender, "x", NULL, NULL), MQ_ERROR_TRANSACTION_USAGE);
    OK(send_text(sender, "single", NULL, MQ_SINGLE_MESSAGE));
    RESULT(send_text(other, "x", NULL, MQ_SINGLE_MESSAGE), MQ_ERROR_TRANSACTION_USAGE);
    RESULT(send_text(sender, "x", NULL, MQ_MTS_TRANSACTION), MQ_ERROR_TRANSACTION_ENLIST);
    RESULT(send_text(sender, "x", NULL, MQ_XA_TRANSACTION), MQ_ERROR_TRANSACTION_ENLIST);
    RESULT(send_text(sender, "x", NULL, (ITransaction *)(uintptr_t)0x1234567890), MQ_ERROR_TRANSACTION_ENLIST);
    OK(MQBeginTransaction(&transaction));
    RESULT(send_text(other, "x", NULL, transaction), MQ_ERROR_TRANSACTION_USAGE);
    OK(ITransaction_Abort(transaction, NULL, FALSE, FALSE));
    EQUAL(ITransaction_Release(transaction), 0);
    OK(receive_text(reader, MQ_ACTION_RECEIVE, NULL, MQ_SINGLE_MESSAGE, body));
    CHECK(strcmp(body, "single") == 0);
    QUEUEHANDLE plain_reader = opened(plain, MQ_RECEIVE_ACCESS);
    for (int i = 0; i < 2; i++)
        RESULT(receive_text(plain_reader, MQ_ACTION_RECEIVE, NULL, MQ_SINGLE_MESSAGE, body),
               MQ_ERROR_TRANSACTION_USAGE);
    HANDLE all[] = {sender, other, reader, plain_reader};
    for (int i = 0; i < 4; i++) OK(MQCloseQueue(all[i]));
}

static void reject(void) {
    const WCHAR *name = create("rejected", true);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS);
    ITransaction *transaction;
    OK(send_text(sender, "x", NULL, MQ_SINGLE_MESSAGE));
    struct bag bag = {0};
    add(&bag, PROPID_M_LOOKUPID, VT_NULL);
    OK(MQBeginTransaction(&transaction));
    OK(MQReceiveMessage(reader, 0, MQ_ACTION_RECEIVE, message(&bag), NULL, NULL, NULL, transaction));
    uint64_t id = bag.values[0].uhVal;
    RESULT(MQMarkMessageRejected(reader, id + 1), MQ_ERROR_MESSAGE_NOT_FOUND);
    RESULT(MQMarkMessageRejected(sender, id), MQ_ERROR_ACCESS_DENIED);
    RESULT(MQMarkMessageRejected(NULL, id), MQ_ERROR_INVALID_HANDLE);
    OK(MQMarkMessageRejected(reader, id));
    OK(ITransaction_Commit(transaction, FALSE, 0, 0));
    RESULT(MQMarkMessageRejected(reader, id), MQ_ERROR_MESSAGE_NOT_FOUND);
    EQUAL(ITransaction_Release(transaction), 0);
    EQUAL(messages_in(name), 0);
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
}

static void move_in_transaction(void) {
    const WCHAR *name = create("carried_over", true);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS), reader = opened(name, MQ_RECEIVE_ACCESS),
                target = opened(u"DIRECT=OS:.\\private$\\carried_over;s", MQ_MOVE_ACCESS);
    ITransaction *transaction;
    OK(send_text(sender, "x", NULL, MQ_SINGLE_MESSAGE));
    struct bag bag = {0};
    add(&bag, PROPID_M_LOOKUPID, VT_NULL);
    OK(MQReceiveMessage(reader, 0, MQ_ACTION_PEEK_CURRENT, message(&bag), NULL, NULL, NULL, NULL));
    for (int commit = 0; commit < 2; commit++) {
        OK(MQBeginTransaction(&transaction));
        OK(MQMoveMessage(reader, target, bag.values[0].uhVal, transaction));
        OK(commit ? ITransaction_Commit(transaction, FALSE, 0, 0)
                  : ITransaction_Abort(transaction, NULL, FALSE, FALSE));
        EQUAL(ITransaction_Release(transaction), 0);
        EQUAL(messages_in(u"DIRECT=OS:.\\private$\\carried_over;s"), (unsigned)commit);
    }
    HANDLE all[] = {sender, reader, target};
    for (int i = 0; i < 3; i++) OK(MQCloseQueue(all[i]));
}

const struct test_case TRANSACTION_CASES[] = {
    {"the_object", the_object}, {"commit_and_abort", commit_and_abort},
    {"kinds_of_transactions", kinds_of_transactions}, {"reject", reject},
    {"move_in_transaction", move_in_transaction}, {NULL, NULL},
};
