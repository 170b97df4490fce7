/* Every function once, against a server that answers anything: the results do not matter, the sanitizers do. */
#include <sched.h>

#include "suite.h"

static void nothing(HRESULT result, QUEUEHANDLE queue, DWORD timeout, DWORD action, MQMSGPROPS *props,
                    LPOVERLAPPED overlapped, HANDLE cursor) {
    (void)result;
    (void)queue;
    (void)timeout;
    (void)action;
    (void)props;
    (void)cursor;
    __atomic_store_n(&overlapped->InternalHigh, 1, __ATOMIC_RELEASE);
}

static void read_once(QUEUEHANDLE queue, HANDLE cursor, ITransaction *transaction, bool later) {
    WCHAR texts[3][8];
    uint8_t bytes[5][20] = {{0}};
    struct bag bag = {0};
    OVERLAPPED overlapped = {0};
    add_bytes(&bag, PROPID_M_BODY, bytes[0], 20);
    add_u4(&bag, PROPID_M_BODY_SIZE, 0);
    add_bytes(&bag, PROPID_M_MSGID, bytes[1], 20);
    add_bytes(&bag, PROPID_M_CORRELATIONID, bytes[2], 20);
    add_bytes(&bag, PROPID_M_EXTENSION, bytes[3], 20);
    add_u4(&bag, PROPID_M_EXTENSION_LEN, 0);
    add_bytes(&bag, PROPID_M_SENDERID, bytes[4], 20);
    add_u4(&bag, PROPID_M_SENDERID_LEN, 0);
    static const PROPID names[] = {PROPID_M_LABEL, PROPID_M_RESP_QUEUE, PROPID_M_DEST_QUEUE};
    for (int i = 0; i < 3; i++) {
        add_text(&bag, names[i], texts[i]);
        add_u4(&bag, names[i] + 1, 8);
    }
    add(&bag, PROPID_M_LOOKUPID, VT_NULL);
    HRESULT result = MQReceiveMessage(queue, 0, MQ_ACTION_RECEIVE, message(&bag), later ? &overlapped : NULL,
                                      later ? nothing : NULL, cursor, transaction);
    bool waits = result == MQ_INFORMATION_OPERATION_PENDING;
    while (waits && __atomic_load_n(&overlapped.InternalHigh, __ATOMIC_ACQUIRE) == 0) sched_yield();
}

static void free_values(struct bag *bag) {
    for (DWORD i = 0; i < bag->count; i++) {
        MQPROPVARIANT *value = &bag->values[i];
        if (FAILED(bag->statuses[i])) continue;
        if (value->vt == VT_LPWSTR) MQFreeMemory(value->pwszVal);
        if (value->vt == VT_CLSID) MQFreeMemory(value->puuid);
        if (value->vt == (VT_VECTOR | VT_UI1)) MQFreeMemory(value->caub.pElems);
        if (value->vt == (VT_VECTOR | VT_LPWSTR)) {
            for (ULONG t = 0; t < value->calpwstr.cElems; t++) MQFreeMemory(value->calpwstr.pElems[t]);
            MQFreeMemory(value->calpwstr.pElems);
        }
    }
}

static void get_everything(void) {
    static const WCHAR name[] = u"DIRECT=OS:.\\private$\\x", object[] = u"QUEUE=DIRECT=OS:.\\private$\\x";
    struct bag queue = {0}, of_queue = {0}, of_machine = {0}, computer = {0};
    for (PROPID id = 101; id <= 126; id++) add(&queue, id, VT_NULL);
    if (!FAILED(MQGetQueueProperties(name, queue_props(&queue)))) free_values(&queue);
    for (PROPID id = 1; id <= 27; id++) add(&of_queue, id, VT_NULL);
    message(&of_queue);
    (void)MQMgmtGetInfo(NULL, object, &of_queue.props.management);
    free_values(&of_queue);
    for (PROPID id = 1; id <= 6; id++) add(&of_machine, id, VT_NULL);
    message(&of_machine);
    (void)MQMgmtGetInfo(NULL, u"MACHINE", &of_machine.props.management);
    free_values(&of_machine);
    for (PROPID id = 201; id <= 233; id++) add(&computer, id, VT_NULL);
    message(&computer);
    (void)MQGetMachineProperties(u"other", NULL, &computer.props.machine);
    free_values(&computer);
    for (DWORD i = 0; i < computer.count; i++) computer.values[i].vt = VT_NULL;
    (void)MQGetMachineProperties(NULL, NULL, &computer.props.machine);
    free_values(&computer);
}

static void everything(void) {
    static const WCHAR name[] = u"DIRECT=OS:.\\private$\\x";
    ITransaction *transaction = NULL;
    QUEUEHANDLE sender = NULL, reader = NULL, target = NULL;
    HANDLE cursor = NULL, search = NULL;
    WCHAR text[64];
    uint8_t descriptor[64];
    DWORD size = 64;
    (void)MQBeginTransaction(&transaction);
    (void)MQOpenQueue(name, MQ_SEND_ACCESS, 0, &sender);
    (void)MQOpenQueue(name, MQ_RECEIVE_ACCESS, 0, &reader);
    (void)MQOpenQueue(name, MQ_MOVE_ACCESS, 0, &target);
    (void)MQCreateCursor(reader, &cursor);
    uint8_t id[20];
    struct bag out = {0}, create_bag = {0};
    add_bytes(&out, PROPID_M_MSGID, id, 20);
    (void)MQSendMessage(sender, message(&out), transaction);
    for (int later = 0; later < 2; later++) {
        read_once(reader, NULL, later ? NULL : transaction, later);
        read_once(reader, cursor, NULL, later);
    }
    (void)MQMoveMessage(reader, target, 1, NULL);
    (void)MQPurgeQueue(reader);
    get_everything();
    add_text(&create_bag, PROPID_Q_PATHNAME, u".\\private$\\x");
    (void)MQCreateQueue(NULL, queue_props(&create_bag), text, &size);
    (void)MQDeleteQueue(name);
    size = 64;
    (void)MQPathNameToFormatName(u".\\public", text, &size);
    (void)MQGetQueueSecurity(name, DACL_SECURITY_INFORMATION | OWNER_SECURITY_INFORMATION, descriptor, 64, &size);
    (void)MQRegisterCertificate(MQCERT_REGISTER_IF_NOT_EXIST, NULL, 0);
    PROPID columns[] = {PROPID_Q_PATHNAME, PROPID_Q_LABEL, PROPID_Q_INSTANCE};
    MQCOLUMNSET set = {3, columns};
    if (MQLocateBegin(NULL, NULL, &set, NULL, &search) == MQ_OK) (void)MQLocateEnd(search);
    if (transaction != NULL) {
        (void)ITransaction_Commit(transaction, FALSE, 0, 0);
        (void)ITransaction_Release(transaction);
    }
    HANDLE all[] = {sender, reader, target};
    (void)MQCloseCursor(cursor);
    for (int i = 0; i < 3; i++) (void)MQCloseQueue(all[i]);
}

/* The server closes the connection instead of answering the commit. */
static void in_doubt(void) {
    ITransaction *transaction;
    OK(MQBeginTransaction(&transaction));
    RESULT(ITransaction_Commit(transaction, FALSE, 0, 0), XACT_E_INDOUBT);
    RESULT(ITransaction_Commit(transaction, FALSE, 0, 0), XACT_E_NOTRANSACTION);
    EQUAL(ITransaction_Release(transaction), 0);
}

/* A queue manager without a key to encrypt messages for it. */
static void without_key(void) {
    struct bag bag = {0};
    add(&bag, PROPID_QM_ENCRYPTION_PK, VT_NULL);
    message(&bag);
    RESULT(MQGetMachineProperties(NULL, NULL, &bag.props.machine), MQ_ERROR_PROPERTY);
    RESULT(status_of(&bag, PROPID_QM_ENCRYPTION_PK), MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST);
}

const struct test_case HOSTILE_CASES[] = {
    {"everything", everything}, {"in_doubt", in_doubt}, {"without_key", without_key}, {NULL, NULL}};
