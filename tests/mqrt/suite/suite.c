#include "suite.h"

void equal(unsigned long long found, unsigned long long wanted, const char *what, const char *file, int line) {
    if (found == wanted) return;
    fprintf(stderr, "%s:%d: %s is 0x%llx, not 0x%llx\n", file, line, what, found, wanted);
    exit(1);
}

MQPROPVARIANT *add(struct bag *bag, PROPID id, VARTYPE type) {
    MQPROPVARIANT *value = &bag->values[bag->count];
    bag->ids[bag->count++] = id;
    memset(value, 0, sizeof *value);
    value->vt = type;
    return value;
}

void add_u1(struct bag *bag, PROPID id, unsigned value) { add(bag, id, VT_UI1)->bVal = (UCHAR)value; }
void add_u4(struct bag *bag, PROPID id, unsigned value) { add(bag, id, VT_UI4)->ulVal = value; }
void add_text(struct bag *bag, PROPID id, const WCHAR *text) { add(bag, id, VT_LPWSTR)->pwszVal = (LPWSTR)text; }

void add_bytes(struct bag *bag, PROPID id, const void *bytes, size_t size) {
    MQPROPVARIANT *value = add(bag, id, VT_VECTOR | VT_UI1);
    value->caub.cElems = (ULONG)size;
    value->caub.pElems = (UCHAR *)bytes;
}

static DWORD index_of(const struct bag *bag, PROPID id) {
    DWORD i = 0;
    while (i < bag->count && bag->ids[i] != id) i++;
    CHECK(i < bag->count);
    return i;
}

MQPROPVARIANT *value_of(struct bag *bag, PROPID id) { return &bag->values[index_of(bag, id)]; }
HRESULT status_of(struct bag *bag, PROPID id) { return bag->statuses[index_of(bag, id)]; }

MQMSGPROPS *message(struct bag *bag) {
    bag->props.message = (MQMSGPROPS){bag->count, bag->ids, bag->values, bag->statuses};
    return &bag->props.message;
}

MQQUEUEPROPS *queue_props(struct bag *bag) {
    bag->props.queue = (MQQUEUEPROPS){bag->count, bag->ids, bag->values, bag->statuses};
    return &bag->props.queue;
}

const WCHAR *wide(const char *ascii) {
    static WCHAR texts[64][256];
    static unsigned next;
    WCHAR *text = texts[next++ % 64];
    size_t i = 0;
    for (; ascii[i] != 0; i++) text[i] = (WCHAR)ascii[i];
    text[i] = 0;
    return text;
}

bool same(const WCHAR *text, const char *ascii) {
    size_t i = 0;
    while (ascii[i] != 0 && text[i] == (unsigned char)ascii[i]) i++;
    return ascii[i] == 0 && text[i] == 0;
}

size_t wide_length_of(const WCHAR *text) {
    size_t length = 0;
    while (text[length] != 0) length++;
    return length;
}

const WCHAR *create(const char *name, bool transactional) {
    char path[200];
    struct bag bag = {0};
    WCHAR format_name[128];
    DWORD length = 128;
    snprintf(path, sizeof path, ".\\private$\\%s", name);
    add_text(&bag, PROPID_Q_PATHNAME, wide(path));
    if (transactional) add_u1(&bag, PROPID_Q_TRANSACTION, MQ_TRANSACTIONAL);
    OK(MQCreateQueue(NULL, queue_props(&bag), format_name, &length));
    char direct[220];
    snprintf(direct, sizeof direct, "DIRECT=OS:%s", path);
    return wide(direct);
}

QUEUEHANDLE opened(const WCHAR *name, DWORD access) {
    QUEUEHANDLE queue;
    OK(MQOpenQueue(name, access, MQ_DENY_NONE, &queue));
    CHECK(queue != NULL);
    return queue;
}

HRESULT send_text(QUEUEHANDLE queue, const char *body, const WCHAR *label, ITransaction *transaction) {
    struct bag bag = {0};
    add_bytes(&bag, PROPID_M_BODY, body, strlen(body));
    add_u1(&bag, PROPID_M_DELIVERY, MQMSG_DELIVERY_RECOVERABLE);
    if (label != NULL) add_text(&bag, PROPID_M_LABEL, label);
    return MQSendMessage(queue, message(&bag), transaction);
}

HRESULT receive_text(QUEUEHANDLE queue, DWORD action, HANDLE cursor, ITransaction *transaction, char body[64]) {
    struct bag bag = {0};
    add_bytes(&bag, PROPID_M_BODY, body, 63);
    add_u4(&bag, PROPID_M_BODY_SIZE, 0);
    HRESULT result = MQReceiveMessage(queue, 0, action, message(&bag), NULL, NULL, cursor, transaction);
    if (result == MQ_OK) body[bag.values[1].ulVal] = 0;
    return result;
}

/* The lookup id of the message in a bag, whose body must be `body`. */
static uint64_t lookup_id_of(struct bag *bag, const char *body) {
    char *found = (char *)bag->values[1].caub.pElems;
    found[bag->values[2].ulVal] = 0;
    CHECK(strcmp(found, body) == 0);
    return bag->values[0].uhVal;
}

static MQMSGPROPS *with_lookup_id(struct bag *bag, char found[64]) {
    add(bag, PROPID_M_LOOKUPID, VT_NULL);
    add_bytes(bag, PROPID_M_BODY, found, 63);
    add_u4(bag, PROPID_M_BODY_SIZE, 0);
    return message(bag);
}

uint64_t lookup(QUEUEHANDLE reader, uint64_t id, DWORD action, HRESULT wanted, const char *body) {
    struct bag bag = {0};
    char found[64];
    MQMSGPROPS *props = with_lookup_id(&bag, found);
    RESULT(MQReceiveMessageByLookupId(reader, id, action, props, NULL, NULL, NULL), wanted);
    return wanted == MQ_OK ? lookup_id_of(&bag, body) : 0;
}

uint64_t read_at(QUEUEHANDLE reader, DWORD action, HANDLE cursor, const char *body) {
    struct bag bag = {0};
    char found[64];
    OK(MQReceiveMessage(reader, 0, action, with_lookup_id(&bag, found), NULL, NULL, cursor, NULL));
    return lookup_id_of(&bag, body);
}

unsigned messages_in(const WCHAR *name) {
    struct bag bag = {0};
    WCHAR object[300] = u"QUEUE=";
    size_t i = 0;
    for (; name[i] != 0; i++) object[6 + i] = name[i];
    object[6 + i] = 0;
    add(&bag, PROPID_MGMT_QUEUE_MESSAGE_COUNT, VT_NULL);
    message(&bag);
    OK(MQMgmtGetInfo(NULL, object, &bag.props.management));
    return bag.values[0].ulVal;
}

void ask(const char *what) {
    char line[16];
    printf("%s\n", what);
    fflush(stdout);
    CHECK(fgets(line, sizeof line, stdin) != NULL);
}

int main(int count, char **names) {
    const struct test_case *const tables[] = {QUEUE_CASES, SEND_CASES,     RECEIVE_CASES,    TRANSACTION_CASES,
                                              ASYNC_CASES, PROPERTY_CASES, MANAGEMENT_CASES, LINK_CASES,
                                              HOSTILE_CASES}; /* the last two need more than a server */
    for (int i = 1; i < count; i++) {
        const struct test_case *found = NULL;
        for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
            for (const struct test_case *one = tables[t]; one->name != NULL; one++) {
                if (strcmp(names[i], "list") == 0 && t + 2 < sizeof tables / sizeof *tables) puts(one->name);
                if (strcmp(one->name, names[i]) == 0) found = one;
            }
        }
        if (strcmp(names[i], "list") == 0) continue;
        CHECK(found != NULL);
        found->run();
        printf("%s passed\n", names[i]);
        fflush(stdout);
    }
    return 0;
}
