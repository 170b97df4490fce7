/* Queues: create, delete, properties, security. */
#include "suite.h"

static const WCHAR DIRECT[] = u"DIRECT=OS:.\\private$\\described";

static void create_and_delete(void) {
    struct bag bag = {0};
    WCHAR name[128];
    DWORD length = 128;
    RESULT(MQCreateQueue(NULL, NULL, name, &length), MQ_ERROR_INVALID_PARAMETER);
    add_u1(&bag, PROPID_Q_JOURNAL, MQ_JOURNAL);
    RESULT(MQCreateQueue(NULL, queue_props(&bag), name, &length), MQ_ERROR_INSUFFICIENT_PROPERTIES);
    add_text(&bag, PROPID_Q_PATHNAME, u".\\private$\\made");
    RESULT(MQCreateQueue(NULL, queue_props(&bag), name, NULL), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQCreateQueue(NULL, queue_props(&bag), NULL, &length), MQ_ERROR_INVALID_PARAMETER);
    static const uint8_t nonsense[20] = {9};
    RESULT(MQCreateQueue((void *)nonsense, queue_props(&bag), name, &length), MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR);
    length = 3; /* the queue is created, only its name does not fit */
    RESULT(MQCreateQueue(NULL, queue_props(&bag), name, &length), MQ_INFORMATION_FORMATNAME_BUFFER_TOO_SMALL);
    CHECK(length > 40);
    RESULT(MQCreateQueue(NULL, queue_props(&bag), name, &length), MQ_ERROR_QUEUE_EXISTS);
    OK(MQDeleteQueue(u"DIRECT=OS:.\\private$\\made"));
    RESULT(MQDeleteQueue(u"DIRECT=OS:.\\private$\\made"), MQ_ERROR_QUEUE_NOT_FOUND);
    OK(MQCreateQueue(NULL, queue_props(&bag), name, &length));
    EQUAL(length, wide_length_of(name) + 1);
    OK(MQDeleteQueue(name)); /* the format name that it returned */
    RESULT(MQDeleteQueue(NULL), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQDeleteQueue(u"made"), MQ_ERROR_ILLEGAL_FORMATNAME);
    static const WCHAR *const wrong[] = {u"", u"made", u".\\private$\\", u".\\private$\\a\\b"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bag bad = {0};
        add_text(&bad, PROPID_Q_PATHNAME, wrong[i]);
        length = 128;
        RESULT(MQCreateQueue(NULL, queue_props(&bad), name, &length), MQ_ERROR_ILLEGAL_QUEUE_PATHNAME);
    }
}

static void set_and_get(void) {
    create("described", true);
    GUID type = {0x11223344, 0x5566, 0x7788, {1, 2, 3, 4, 5, 6, 7, 8}}, found_type = {0};
    struct bag set = {0};
    add(&set, PROPID_Q_TYPE, VT_CLSID)->puuid = &type;
    add_u1(&set, PROPID_Q_JOURNAL, MQ_JOURNAL);
    add_u4(&set, PROPID_Q_QUOTA, 1000);
    add(&set, PROPID_Q_BASEPRIORITY, VT_I2)->iVal = -7;
    add_u4(&set, PROPID_Q_JOURNAL_QUOTA, 2000);
    add_text(&set, PROPID_Q_LABEL, u"Auftr\u00e4ge");
    add_u1(&set, PROPID_Q_AUTHENTICATE, 0);
    add_u4(&set, PROPID_Q_PRIV_LEVEL, MQ_PRIV_LEVEL_BODY);
    OK(MQSetQueueProperties(DIRECT, queue_props(&set)));

    struct bag get = {0};
    static const PROPID ids[] = {
        PROPID_Q_JOURNAL,     PROPID_Q_QUOTA,        PROPID_Q_BASEPRIORITY,      PROPID_Q_JOURNAL_QUOTA,
        PROPID_Q_LABEL,       PROPID_Q_CREATE_TIME,  PROPID_Q_MODIFY_TIME,       PROPID_Q_AUTHENTICATE,
        PROPID_Q_PRIV_LEVEL,  PROPID_Q_TRANSACTION,  PROPID_Q_PATHNAME,          PROPID_Q_INSTANCE,
        PROPID_Q_PATHNAME_DNS, PROPID_Q_MULTICAST_ADDRESS,
    };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) add(&get, ids[i], VT_NULL);
    add(&get, PROPID_Q_TYPE, VT_CLSID)->puuid = &found_type;
    OK(MQGetQueueProperties(DIRECT, queue_props(&get)));
    EQUAL(value_of(&get, PROPID_Q_JOURNAL)->bVal, 1);
    EQUAL(value_of(&get, PROPID_Q_QUOTA)->ulVal, 1000);
    EQUAL(value_of(&get, PROPID_Q_BASEPRIORITY)->iVal, -7);
    EQUAL(value_of(&get, PROPID_Q_JOURNAL_QUOTA)->ulVal, 2000);
    CHECK(memcmp(value_of(&get, PROPID_Q_LABEL)->pwszVal, u"Auftr\u00e4ge", 18) == 0);
    CHECK(value_of(&get, PROPID_Q_CREATE_TIME)->lVal > 1700000000);
    EQUAL(value_of(&get, PROPID_Q_CREATE_TIME)->vt, VT_I4);
    EQUAL(value_of(&get, PROPID_Q_PRIV_LEVEL)->ulVal, MQ_PRIV_LEVEL_BODY);
    EQUAL(value_of(&get, PROPID_Q_TRANSACTION)->bVal, MQ_TRANSACTIONAL);
    CHECK(memcmp(&found_type, &type, sizeof type) == 0);
    const WCHAR *path = value_of(&get, PROPID_Q_PATHNAME)->pwszVal;
    CHECK(path[wide_length_of(path) - 9] == 'd');
    CHECK(value_of(&get, PROPID_Q_INSTANCE)->puuid->Data1 != 0);
    static const PROPID owned[] = {PROPID_Q_LABEL, PROPID_Q_PATHNAME, PROPID_Q_PATHNAME_DNS,
                                   PROPID_Q_MULTICAST_ADDRESS};
    for (size_t i = 0; i < 4; i++) MQFreeMemory(value_of(&get, owned[i])->pwszVal);
    MQFreeMemory(value_of(&get, PROPID_Q_INSTANCE)->puuid);
    MQFreeMemory(NULL);

    struct bag address = {0};
    add(&address, PROPID_Q_MULTICAST_ADDRESS, VT_EMPTY);
    OK(MQSetQueueProperties(DIRECT, queue_props(&address)));
}

static void wrong_properties(void) {
    create("wrong", false);
    static const WCHAR name[] = u"DIRECT=OS:.\\private$\\wrong";
    static const struct {
        PROPID id;
        VARTYPE type;
        unsigned value;
        HRESULT set, get;
    } wrong[] = {
        {PROPID_Q_JOURNAL, VT_UI4, 1, MQ_ERROR_ILLEGAL_PROPERTY_VT, MQ_ERROR_ILLEGAL_PROPERTY_VT},
        {PROPID_Q_JOURNAL, VT_UI1, 2, MQ_ERROR_ILLEGAL_PROPERTY_VALUE, MQ_OK},
        {PROPID_Q_QUOTA, VT_UI1, 2, MQ_ERROR_ILLEGAL_PROPERTY_VT, MQ_ERROR_ILLEGAL_PROPERTY_VT},
        {PROPID_Q_PRIV_LEVEL, VT_UI4, 3, MQ_ERROR_ILLEGAL_PROPERTY_VALUE, MQ_OK},
        {PROPID_Q_LABEL, VT_LPWSTR, 0, MQ_ERROR_ILLEGAL_PROPERTY_VALUE, MQ_OK},
        {PROPID_Q_LABEL, VT_UI4, 0, MQ_ERROR_ILLEGAL_PROPERTY_VT, MQ_ERROR_ILLEGAL_PROPERTY_VT},
        {PROPID_Q_TYPE, VT_CLSID, 0, MQ_ERROR_ILLEGAL_PROPERTY_VALUE, MQ_OK},
        {PROPID_Q_TRANSACTION, VT_UI1, 1, MQ_ERROR_PROPERTY_NOTALLOWED, MQ_OK},
        {PROPID_Q_PATHNAME, VT_LPWSTR, 0, MQ_ERROR_PROPERTY_NOTALLOWED, MQ_OK},
        {PROPID_Q_INSTANCE, VT_CLSID, 0, MQ_ERROR_PROPERTY_NOTALLOWED, MQ_OK},
        {PROPID_Q_CREATE_TIME, VT_I4, 0, MQ_ERROR_PROPERTY_NOTALLOWED, MQ_OK},
        {PROPID_Q_ADS_PATH, VT_NULL, 0, MQ_ERROR_PROPERTY_NOTALLOWED, MQ_INFORMATION_UNSUPPORTED_PROPERTY},
        {7777, VT_UI4, 0, MQ_INFORMATION_UNSUPPORTED_PROPERTY, MQ_INFORMATION_UNSUPPORTED_PROPERTY},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bag bag = {0};
        MQPROPVARIANT *value = add(&bag, wrong[i].id, wrong[i].type);
        value->ulVal = wrong[i].value;
        HRESULT whole = FAILED(wrong[i].set) ? MQ_ERROR_PROPERTY : MQ_INFORMATION_PROPERTY;
        RESULT(MQSetQueueProperties(name, queue_props(&bag)), whole);
        RESULT(bag.statuses[0], wrong[i].set);
        whole = FAILED(wrong[i].get) ? MQ_ERROR_PROPERTY : wrong[i].get == MQ_OK ? MQ_OK : MQ_INFORMATION_PROPERTY;
        value->ulVal = 0;
        value->puuid = NULL;
        RESULT(MQGetQueueProperties(name, queue_props(&bag)), whole);
        RESULT(bag.statuses[0], wrong[i].get);
        if (whole == MQ_OK && (wrong[i].type == VT_LPWSTR || wrong[i].type == VT_CLSID)) MQFreeMemory(value->pwszVal);
    }
    struct bag label = {0}, none = {0};
    WCHAR text[126];
    for (int i = 0; i < 125; i++) text[i] = 'x';
    text[125] = 0;
    add_text(&label, PROPID_Q_LABEL, text);
    RESULT(MQSetQueueProperties(name, queue_props(&label)), MQ_ERROR_PROPERTY);
    text[124] = 0;
    OK(MQSetQueueProperties(name, queue_props(&label)));
    text[1] = 0xDC00; /* half a pair */
    RESULT(MQSetQueueProperties(name, queue_props(&label)), MQ_ERROR_PROPERTY);
    RESULT(MQGetQueueProperties(u"DIRECT=OS:.\\private$\\nosuch", queue_props(&none)), MQ_ERROR_QUEUE_NOT_FOUND);
    RESULT(MQSetQueueProperties(u"DIRECT=OS:.\\private$\\nosuch", queue_props(&label)), MQ_ERROR_PROPERTY);
    RESULT(MQGetQueueProperties(u"wrong", queue_props(&none)), MQ_ERROR_ILLEGAL_FORMATNAME);
    RESULT(MQGetQueueProperties(NULL, queue_props(&none)), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQGetQueueProperties(name, NULL), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQSetQueueProperties(name, NULL), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQSetQueueProperties(NULL, queue_props(&none)), MQ_ERROR_INVALID_PARAMETER);
    OK(MQSetQueueProperties(name, queue_props(&none)));
}

static void security(void) {
    create("secured", false);
    static const WCHAR name[] = u"DIRECT=OS:.\\private$\\secured";
    uint8_t all[2048], part[2048];
    DWORD needed = 0, again = 0;
    enum { ALL = OWNER_SECURITY_INFORMATION | GROUP_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION };
    RESULT(MQGetQueueSecurity(name, ALL, NULL, 0, &needed), MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL);
    CHECK(needed > 40 && needed < sizeof all);
    RESULT(MQGetQueueSecurity(name, ALL, all, needed - 1, &again), MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL);
    OK(MQGetQueueSecurity(name, ALL, all, needed, &again));
    EQUAL(again, needed);
    EQUAL(all[0], 1);
    OK(MQGetQueueSecurity(name, OWNER_SECURITY_INFORMATION, part, sizeof part, &again));
    CHECK(again < needed);
    OK(MQSetQueueSecurity(name, DACL_SECURITY_INFORMATION, all));
    uint8_t denied[] = {1, 0, 4, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 2, 0, 8, 0, 0, 0, 0, 0};
    OK(MQSetQueueSecurity(name, DACL_SECURITY_INFORMATION, denied)); /* a list without an entry */
    OK(MQGetQueueSecurity(name, DACL_SECURITY_INFORMATION, part, sizeof part, &again));
    EQUAL(again, sizeof denied);
    OK(MQSetQueueSecurity(name, DACL_SECURITY_INFORMATION, all));
    RESULT(MQGetQueueSecurity(name, SACL_SECURITY_INFORMATION, all, sizeof all, &needed), MQ_ERROR_PRIVILEGE_NOT_HELD);
    RESULT(MQSetQueueSecurity(name, SACL_SECURITY_INFORMATION, all), MQ_ERROR_PRIVILEGE_NOT_HELD);
    RESULT(MQGetQueueSecurity(name, 0x100, all, sizeof all, &needed), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQGetQueueSecurity(name, ALL, NULL, 9, &needed), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQGetQueueSecurity(name, ALL, all, sizeof all, NULL), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQGetQueueSecurity(u"DIRECT=OS:.\\private$\\nosuch", ALL, all, sizeof all, &needed),
           MQ_ERROR_QUEUE_NOT_FOUND);
    RESULT(MQSetQueueSecurity(name, DACL_SECURITY_INFORMATION, NULL), MQ_ERROR_INVALID_PARAMETER);
    denied[3] = 0; /* not self-relative */
    RESULT(MQSetQueueSecurity(name, DACL_SECURITY_INFORMATION, denied), MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR);
    denied[3] = 0x80;
    denied[22] = 2; /* an access list that is smaller than its head */
    RESULT(MQSetQueueSecurity(name, DACL_SECURITY_INFORMATION, denied), MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR);
    denied[22] = 8;
    denied[16] = 4; /* a part inside the head */
    RESULT(MQSetQueueSecurity(name, DACL_SECURITY_INFORMATION, denied), MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR);

    WCHAR created[128];
    DWORD length = 128;
    struct bag bag = {0};
    add_text(&bag, PROPID_Q_PATHNAME, u".\\private$\\secured_too");
    OK(MQCreateQueue(all, queue_props(&bag), created, &length));
}

const struct test_case PROPERTY_CASES[] = {
    {"create_and_delete", create_and_delete}, {"set_and_get", set_and_get}, {"wrong_properties", wrong_properties},
    {"security", security}, {NULL, NULL},
};
