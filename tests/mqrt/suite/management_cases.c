/* Management, computers, the directory, and the functions of kernel32. */
#include <unistd.h>

#include "suite.h"

BOOL GetHandleInformation(HANDLE handle, DWORD *flags);
BOOL GetComputerNameW(WCHAR *buffer, DWORD *size);
BOOL GetComputerName(WCHAR *buffer, DWORD *size);
DWORD FormatMessageW(DWORD flags, const void *source, DWORD message, DWORD language, WCHAR *buffer,
                     DWORD size, void *arguments);
DWORD FormatMessage(DWORD flags, const void *source, DWORD message, DWORD language, WCHAR *buffer,
                     DWORD size, void *arguments);
HLOCAL LocalFree(HLOCAL memory);

static HRESULT info(const WCHAR *computer, const WCHAR *object, struct bag *bag) {
    message(bag);
    return MQMgmtGetInfo(computer, object, &bag->props.management);
}

static void free_texts(MQPROPVARIANT *value) {
    for (ULONG i = 0; i < value->calpwstr.cElems; i++) MQFreeMemory(value->calpwstr.pElems[i]);
    MQFreeMemory(value->calpwstr.pElems);
}

static void machine(void) {
    create("listed_one", false);
    create("listed_two", true);
    struct bag bag = {0};
    for (PROPID id = 1; id <= 7; id++) add(&bag, id, VT_NULL);
    RESULT(info(NULL, u"MACHINE", &bag), MQ_INFORMATION_PROPERTY); /* there is no seventh */
    for (int i = 0; i < 6; i++) OK(bag.statuses[i]);
    RESULT(bag.statuses[6], MQ_INFORMATION_UNSUPPORTED_PROPERTY);
    EQUAL(bag.values[1].vt, VT_VECTOR | VT_LPWSTR);
    CHECK(bag.values[1].calpwstr.cElems >= 2);
    EQUAL(bag.values[5].vt, VT_UI8);
    CHECK(same(bag.values[3].pwszVal, "CONNECTED"));
    free_texts(&bag.values[0]);
    free_texts(&bag.values[1]);
    for (int i = 2; i < 5; i++) MQFreeMemory(bag.values[i].pwszVal);
    struct bag wrong = {0}, one = {0};
    add(&wrong, PROPID_MGMT_MSMQ_PRIVATEQ, VT_UI4);
    RESULT(info(NULL, u"machine", &wrong), MQ_ERROR_PROPERTY);
    RESULT(wrong.statuses[0], MQ_ERROR_ILLEGAL_PROPERTY_VT);
    add(&one, PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES, VT_NULL);
    RESULT(info(NULL, u"OTHER", &one), MQ_ERROR_INVALID_PARAMETER);
    RESULT(info(NULL, NULL, &one), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQMgmtGetInfo(NULL, u"MACHINE", NULL), MQ_ERROR_INVALID_PARAMETER);
    RESULT(info(u"elsewhere", u"MACHINE", &one), MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE);
    OK(info(u"localhost", u"MACHINE", &one));
    RESULT(MQMgmtAction(NULL, u"MACHINE", u"TIDY"), MQ_OK);
    RESULT(MQMgmtAction(NULL, u"MACHINE", u"DISCONNECT"), MQ_ERROR_UNSUPPORTED_OPERATION);
    RESULT(MQMgmtAction(NULL, u"MACHINE", u"PAUSE"), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQMgmtAction(NULL, u"QUEUE=DIRECT=OS:a\\private$\\b", u"TIDY"), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQMgmtAction(NULL, u"QUEUE=nothing", u"PAUSE"), MQ_ERROR_ILLEGAL_FORMATNAME);
    RESULT(MQMgmtAction(NULL, u"QUEUE=DIRECT=OS:a\\private$\\b", u"PAUSE"), MQ_ERROR_QUEUE_NOT_FOUND);
    RESULT(MQMgmtAction(u"elsewhere", u"MACHINE", u"TIDY"), MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE);
    RESULT(MQMgmtAction(NULL, NULL, u"TIDY"), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQMgmtAction(NULL, u"MACHINE", NULL), MQ_ERROR_INVALID_PARAMETER);
}

static void one_queue(void) {
    const WCHAR *name = create("managed", true);
    QUEUEHANDLE sender = opened(name, MQ_SEND_ACCESS),
                later = opened(u"DIRECT=OS:.\\private$\\managed;sub", MQ_PEEK_ACCESS);
    OK(send_text(sender, "x", NULL, MQ_SINGLE_MESSAGE));
    struct bag bag = {0};
    for (PROPID id = 1; id <= 27; id++) add(&bag, id, VT_NULL);
    RESULT(info(NULL, u"QUEUE=DIRECT=OS:.\\private$\\managed", &bag), MQ_INFORMATION_PROPERTY);
    static const PROPID not_offered[] = {13, 16, 17, 18, 24, 25};
    for (int i = 0; i < 6; i++) RESULT(bag.statuses[not_offered[i] - 1], MQ_INFORMATION_UNSUPPORTED_PROPERTY);
    CHECK(same(value_of(&bag, PROPID_MGMT_QUEUE_XACT)->pwszVal, "YES"));
    CHECK(same(value_of(&bag, PROPID_MGMT_QUEUE_LOCATION)->pwszVal, "LOCAL"));
    CHECK(same(value_of(&bag, PROPID_MGMT_QUEUE_TYPE)->pwszVal, "PRIVATE"));
    CHECK(same(value_of(&bag, PROPID_MGMT_QUEUE_STATE)->pwszVal, "LOCAL CONNECTION"));
    EQUAL(value_of(&bag, PROPID_MGMT_QUEUE_MESSAGE_COUNT)->ulVal, 1);
    CHECK(value_of(&bag, PROPID_MGMT_QUEUE_BYTES_IN_QUEUE)->ulVal > 0);
    EQUAL(value_of(&bag, PROPID_MGMT_QUEUE_SUBQUEUE_COUNT)->ulVal, 1);
    CHECK(same(value_of(&bag, PROPID_MGMT_QUEUE_SUBQUEUE_NAMES)->calpwstr.pElems[0], "sub"));
    for (DWORD i = 0; i < bag.count; i++) {
        if (bag.values[i].vt == VT_LPWSTR) MQFreeMemory(bag.values[i].pwszVal);
        if (bag.values[i].vt == (VT_VECTOR | VT_LPWSTR)) free_texts(&bag.values[i]);
    }
    struct bag state = {0};
    static const WCHAR far[] = u"DIRECT=OS:managed.example\\private$\\x";
    QUEUEHANDLE outgoing = opened(far, MQ_SEND_ACCESS);
    add(&state, PROPID_MGMT_QUEUE_LOCATION, VT_NULL);
    add(&state, PROPID_MGMT_QUEUE_STATE, VT_NULL);
    OK(info(NULL, u"QUEUE=DIRECT=OS:managed.example\\private$\\x", &state));
    CHECK(same(state.values[0].pwszVal, "REMOTE"));
    for (int i = 0; i < 2; i++) MQFreeMemory(state.values[i].pwszVal);
    struct bag none = {0};
    add(&none, PROPID_MGMT_QUEUE_MESSAGE_COUNT, VT_NULL);
    RESULT(info(NULL, u"QUEUE=DIRECT=OS:.\\private$\\none", &none), MQ_ERROR_QUEUE_NOT_FOUND);
    RESULT(info(NULL, u"QUEUE=none", &none), MQ_ERROR_ILLEGAL_FORMATNAME);
    HANDLE all[] = {sender, later, outgoing};
    for (int i = 0; i < 3; i++) OK(MQCloseQueue(all[i]));
}

static void computers(void) {
    struct bag bag = {0};
    GUID guid = {0};
    add(&bag, PROPID_QM_MACHINE_ID, VT_CLSID)->puuid = &guid;
    add(&bag, PROPID_QM_PATHNAME, VT_NULL);
    add(&bag, PROPID_QM_ENCRYPTION_PK, VT_NULL);
    add(&bag, PROPID_QM_PATHNAME_DNS, VT_NULL);
    message(&bag);
    OK(MQGetMachineProperties(NULL, NULL, &bag.props.machine));
    CHECK(guid.Data1 != 0);
    CHECK(bag.values[1].pwszVal[0] != 0);
    CHECK(bag.values[2].caub.cElems > 100);
    struct bag by_name = {0}, wrong = {0};
    add(&by_name, PROPID_QM_MACHINE_ID, VT_NULL);
    add(&by_name, PROPID_QM_SITE_ID, VT_NULL);
    message(&by_name);
    RESULT(MQGetMachineProperties(bag.values[1].pwszVal, NULL, &by_name.props.machine), MQ_INFORMATION_PROPERTY);
    CHECK(memcmp(by_name.values[0].puuid, &guid, sizeof guid) == 0);
    MQFreeMemory(by_name.values[0].puuid);
    by_name.values[0].vt = VT_NULL;
    RESULT(MQGetMachineProperties(NULL, &guid, &by_name.props.machine), MQ_INFORMATION_PROPERTY);
    MQFreeMemory(by_name.values[0].puuid);
    RESULT(MQGetMachineProperties(u"a", &guid, &by_name.props.machine), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQGetMachineProperties(NULL, NULL, NULL), MQ_ERROR_INVALID_PARAMETER);
    CHECK(FAILED(MQGetMachineProperties(u"no-such-computer", NULL, &by_name.props.machine)));
    guid.Data1++;
    CHECK(FAILED(MQGetMachineProperties(NULL, &guid, &by_name.props.machine)));
    add(&wrong, PROPID_QM_PATHNAME, VT_UI4);
    message(&wrong);
    RESULT(MQGetMachineProperties(NULL, NULL, &wrong.props.machine), MQ_ERROR_PROPERTY);
    MQFreeMemory(bag.values[1].pwszVal);
    MQFreeMemory(bag.values[2].caub.pElems);
    MQFreeMemory(bag.values[3].pwszVal);

    struct bag private = {0};
    add(&private, PROPID_PC_VERSION, VT_NULL);
    add(&private, PROPID_PC_DS_ENABLED, VT_NULL);
    message(&private);
    OK(MQGetPrivateComputerInformation(NULL, &private.props.private));
    CHECK(private.values[0].ulVal >= 0x06000000);
    EQUAL(private.values[1].boolVal, 0);
    EQUAL(private.values[1].vt, VT_BOOL);
    RESULT(MQGetPrivateComputerInformation(u"a", &private.props.private), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQGetPrivateComputerInformation(NULL, NULL), MQ_ERROR_INVALID_PARAMETER);
    private.values[0].vt = VT_UI1;
    RESULT(MQGetPrivateComputerInformation(NULL, &private.props.private), MQ_ERROR_PROPERTY);
}

/* The public queues north\a, north\b and south\c, which the program around the suite has put into the directory. */
static void locate(void) {
    MQPROPERTYRESTRICTION one = {.rel = PREQ, .prop = PROPID_Q_LABEL, .prval = {.vt = VT_LPWSTR}};
    one.prval.pwszVal = (LPWSTR)u"found";
    MQRESTRICTION restriction = {1, &one};
    PROPID ids[] = {PROPID_Q_PATHNAME, PROPID_Q_INSTANCE, PROPID_Q_QUOTA};
    MQCOLUMNSET columns = {3, ids};
    MQSORTKEY key = {PROPID_Q_PATHNAME, QUERY_SORTDESCEND};
    MQSORTSET sort = {1, &key};
    MQPROPVARIANT values[7];
    HANDLE search;
    DWORD count = 7;
    OK(MQLocateBegin(NULL, &restriction, &columns, &sort, &search));
    OK(MQLocateNext(search, &count, values));
    EQUAL(count, 6);
    CHECK(same(values[0].pwszVal, "north\\b") && same(values[3].pwszVal, "north\\a"));
    EQUAL(values[1].vt, VT_CLSID);
    EQUAL(values[2].vt, VT_UI4);
    for (int i = 0; i < 6; i += 3) {
        MQFreeMemory(values[i].pwszVal);
        MQFreeMemory(values[i + 1].puuid);
    }
    count = 7;
    OK(MQLocateNext(search, &count, values));
    EQUAL(count, 0);
    count = 2;
    RESULT(MQLocateNext(search, &count, values), MQ_ERROR_RESULT_BUFFER_TOO_SMALL);
    RESULT(MQLocateNext(search, NULL, values), MQ_ERROR_INVALID_PARAMETER);
    OK(MQLocateEnd(search));
    RESULT(MQLocateEnd(search), MQ_ERROR_INVALID_HANDLE);
    RESULT(MQLocateNext(search, &count, values), MQ_ERROR_INVALID_HANDLE);
    static const unsigned relations[] = {PRLT, PRLE, PRGT, PRGE, PREQ, PRNE}, wanted[] = {0, 2, 1, 3, 2, 1};
    for (int i = 0; i < 6; i++) {
        one.rel = relations[i];
        OK(MQLocateBegin(NULL, &restriction, &columns, NULL, &search)); /* labels: found, found, other */
        MQPROPVARIANT rows[9];
        count = 9;
        OK(MQLocateNext(search, &count, rows));
        EQUAL(count, 3 * wanted[i]);
        for (DWORD r = 0; r < count; r += 3) {
            MQFreeMemory(rows[r].pwszVal);
            MQFreeMemory(rows[r + 1].puuid);
        }
        OK(MQLocateEnd(search));
    }
    OK(MQLocateBegin(NULL, NULL, &columns, NULL, &search));
    OK(MQLocateEnd(search)); /* with results that were not read */
    one.rel = 6;
    RESULT(MQLocateBegin(NULL, &restriction, &columns, NULL, &search), MQ_ERROR_ILLEGAL_RELATION);
    one.rel = PREQ;
    one.prval.vt = VT_UI4;
    RESULT(MQLocateBegin(NULL, &restriction, &columns, NULL, &search), MQ_ERROR_ILLEGAL_PROPERTY_VT);
    one.prop = 5;
    RESULT(MQLocateBegin(NULL, &restriction, &columns, NULL, &search), MQ_ERROR_ILLEGAL_RESTRICTION_PROPID);
    RESULT(MQLocateBegin(u"x", NULL, &columns, NULL, &search), MQ_ERROR_ILLEGAL_CONTEXT);
    RESULT(MQLocateBegin(NULL, NULL, NULL, NULL, &search), MQ_ERROR_ILLEGAL_MQCOLUMNS);
    RESULT(MQLocateBegin(NULL, NULL, &columns, NULL, NULL), MQ_ERROR_INVALID_PARAMETER);
    key.propColumn = 5;
    RESULT(MQLocateBegin(NULL, NULL, &columns, &sort, &search), MQ_ERROR_ILLEGAL_SORT_PROPID);
    sort.aCol = NULL;
    RESULT(MQLocateBegin(NULL, NULL, &columns, &sort, &search), MQ_ERROR_ILLEGAL_SORT);
    ids[0] = 5;
    RESULT(MQLocateBegin(NULL, NULL, &columns, NULL, &search), MQ_ERROR_ILLEGAL_PROPID);
}

static void shims(void) {
    WCHAR text[256], *allocated = NULL;
    DWORD size = 256, flags;
    char host[256];
    EQUAL(GetHandleInformation(NULL, &flags), FALSE);
    EQUAL(GetComputerNameW(text, &size), TRUE);
    gethostname(host, sizeof host);
    EQUAL(size, strcspn(host, "."));
    EQUAL(size, wide_length_of(text));
    DWORD needed = size + 1;
    EQUAL(GetComputerName(text, &size), FALSE); /* no room for the NUL */
    EQUAL(size, needed);
    EQUAL(GetComputerNameW(NULL, &size), FALSE);
    const DWORD not_found = (DWORD)MQ_ERROR_QUEUE_NOT_FOUND;
    DWORD length = FormatMessageW(0x100 | 0x800, NULL, not_found, 0, (WCHAR *)&allocated, 0, NULL);
    EQUAL(length, wide_length_of(allocated));
    CHECK(LocalFree(allocated) == NULL);
    EQUAL(FormatMessage(0, NULL, (DWORD)MQ_ERROR_QUEUE_NOT_FOUND, 0, text, 256, NULL), length);
    EQUAL(FormatMessageW(0, NULL, (DWORD)MQ_ERROR_QUEUE_NOT_FOUND, 0, text, length, NULL), 0);
    EQUAL(FormatMessageW(0, NULL, 5, 0, text, 256, NULL), 0);
    CHECK(FormatMessageW(0, NULL, (DWORD)MQ_ERROR_MULTI_SORT_KEYS, 0, text, 256, NULL) > 0);
}

const struct test_case MANAGEMENT_CASES[] = {
    {"machine", machine}, {"one_queue", one_queue}, {"computers", computers},
    {"locate", locate},   {"shims", shims},         {NULL, NULL},
};
