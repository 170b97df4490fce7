/* Properties of messages on their way in: values, VARTYPEs, statuses. */
#include "suite.h"

static QUEUEHANDLE sender, reader;

static void begin(const char *name) {
    const WCHAR *queue = create(name, false);
    sender = opened(queue, MQ_SEND_ACCESS);
    reader = opened(queue, MQ_RECEIVE_ACCESS);
}

static void end(void) {
    OK(MQCloseQueue(sender));
    OK(MQCloseQueue(reader));
}

/* All properties that a message of System.Messaging has, there and back. */
static void every_property(void) {
    begin("every");
    static const uint8_t correlation[20] = {1, 2, 3, 19};
    static const uint8_t extension[] = {7, 0, 8};
    uint8_t id[20] = {0};
    struct bag out = {0};
    add_bytes(&out, PROPID_M_MSGID, id, sizeof id);
    add_bytes(&out, PROPID_M_CORRELATIONID, correlation, sizeof correlation);
    add_u1(&out, PROPID_M_PRIORITY, 6);
    add_u1(&out, PROPID_M_DELIVERY, MQMSG_DELIVERY_RECOVERABLE);
    add_u1(&out, PROPID_M_ACKNOWLEDGE, MQMSG_ACKNOWLEDGMENT_FULL_RECEIVE);
    add_u1(&out, PROPID_M_JOURNAL, MQMSG_DEADLETTER);
    add_u4(&out, PROPID_M_APPSPECIFIC, 0xFFFFFFFF);
    add_bytes(&out, PROPID_M_BODY, "h\0llo", 5);
    add_u4(&out, PROPID_M_BODY_SIZE, 5);
    add_text(&out, PROPID_M_LABEL, u"Auftr\u00e4ge \U0001F600");
    add_u4(&out, PROPID_M_LABEL_LEN, 12);
    add_u4(&out, PROPID_M_TIME_TO_REACH_QUEUE, 1000);
    add_u4(&out, PROPID_M_TIME_TO_BE_RECEIVED, 2000);
    add_text(&out, PROPID_M_RESP_QUEUE, u"DIRECT=OS:client\\private$\\answers");
    add_text(&out, PROPID_M_ADMIN_QUEUE, u"DIRECT=OS:client\\private$\\admin");
    add_bytes(&out, PROPID_M_EXTENSION, extension, sizeof extension);
    add_u4(&out, PROPID_M_EXTENSION_LEN, sizeof extension);
    add_u4(&out, PROPID_M_BODY_TYPE, VT_BSTR);
    add_u4(&out, PROPID_M_SENDERID_TYPE, MQMSG_SENDERID_TYPE_SID);
    OK(MQSendMessage(sender, message(&out), NULL));
    CHECK(id[16] != 0 || id[17] != 0 || id[18] != 0 || id[19] != 0);

    uint8_t body[16], found_id[20], found_correlation[20], found_extension[8], sid[68];
    WCHAR label[250], response[255], admin[255], destination[255];
    GUID machine, connector;
    struct bag in = {0};
    add(&in, PROPID_M_CLASS, VT_UI2);
    add_bytes(&in, PROPID_M_MSGID, found_id, sizeof found_id);
    add_bytes(&in, PROPID_M_CORRELATIONID, found_correlation, sizeof found_correlation);
    static const PROPID fixed[] = {
        PROPID_M_PRIORITY,     PROPID_M_DELIVERY,    PROPID_M_ACKNOWLEDGE,         PROPID_M_JOURNAL,
        PROPID_M_APPSPECIFIC,  PROPID_M_BODY_SIZE,   PROPID_M_TIME_TO_REACH_QUEUE, PROPID_M_TIME_TO_BE_RECEIVED,
        PROPID_M_SENTTIME,     PROPID_M_ARRIVEDTIME, PROPID_M_VERSION,             PROPID_M_SENDERID_TYPE,
        PROPID_M_BODY_TYPE,    PROPID_M_LOOKUPID,    PROPID_M_ABORT_COUNT,         PROPID_M_MOVE_COUNT,
        PROPID_M_AUTHENTICATED, PROPID_M_AUTHENTICATED_EX,
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) add(&in, fixed[i], VT_NULL);
    add_bytes(&in, PROPID_M_BODY, body, sizeof body);
    add_text(&in, PROPID_M_LABEL, label);
    add_u4(&in, PROPID_M_LABEL_LEN, 250);
    add_text(&in, PROPID_M_RESP_QUEUE, response);
    add_u4(&in, PROPID_M_RESP_QUEUE_LEN, 255);
    add_text(&in, PROPID_M_ADMIN_QUEUE, admin);
    add_u4(&in, PROPID_M_ADMIN_QUEUE_LEN, 255);
    add_text(&in, PROPID_M_DEST_QUEUE, destination);
    add_u4(&in, PROPID_M_DEST_QUEUE_LEN, 255);
    add_bytes(&in, PROPID_M_EXTENSION, found_extension, sizeof found_extension);
    add_u4(&in, PROPID_M_EXTENSION_LEN, 0);
    add_bytes(&in, PROPID_M_SENDERID, sid, sizeof sid);
    add_u4(&in, PROPID_M_SENDERID_LEN, 0);
    add(&in, PROPID_M_SRC_MACHINE_ID, VT_CLSID)->puuid = &machine;
    add(&in, PROPID_M_CONNECTOR_TYPE, VT_CLSID)->puuid = &connector;
    OK(MQReceiveMessage(reader, 1000, MQ_ACTION_RECEIVE, message(&in), NULL, NULL, NULL, NULL));
    CHECK(memcmp(id, found_id, 20) == 0);
    CHECK(memcmp(correlation, found_correlation, 20) == 0);
    CHECK(memcmp(&machine, id, 16) == 0);
    EQUAL(value_of(&in, PROPID_M_CLASS)->uiVal, MQMSG_CLASS_NORMAL);
    EQUAL(value_of(&in, PROPID_M_PRIORITY)->bVal, 6);
    EQUAL(value_of(&in, PROPID_M_PRIORITY)->vt, VT_UI1);
    EQUAL(value_of(&in, PROPID_M_DELIVERY)->bVal, 1);
    EQUAL(value_of(&in, PROPID_M_ACKNOWLEDGE)->bVal, MQMSG_ACKNOWLEDGMENT_FULL_RECEIVE);
    EQUAL(value_of(&in, PROPID_M_JOURNAL)->bVal, MQMSG_DEADLETTER);
    EQUAL(value_of(&in, PROPID_M_APPSPECIFIC)->ulVal, 0xFFFFFFFF);
    EQUAL(value_of(&in, PROPID_M_BODY_SIZE)->ulVal, 5);
    CHECK(memcmp(body, "h\0llo", 5) == 0);
    EQUAL(value_of(&in, PROPID_M_LABEL_LEN)->ulVal, 12);
    CHECK(memcmp(label, u"Auftr\u00e4ge \U0001F600", 24) == 0);
    EQUAL(value_of(&in, PROPID_M_TIME_TO_REACH_QUEUE)->ulVal, 1000);
    EQUAL(value_of(&in, PROPID_M_TIME_TO_BE_RECEIVED)->ulVal, 2000);
    CHECK(same(response, "DIRECT=OS:client\\private$\\answers"));
    EQUAL(value_of(&in, PROPID_M_RESP_QUEUE_LEN)->ulVal, 34);
    CHECK(same(admin, "DIRECT=OS:client\\private$\\admin"));
    CHECK(same(destination, "DIRECT=OS:.\\private$\\every"));
    EQUAL(value_of(&in, PROPID_M_EXTENSION_LEN)->ulVal, 3);
    CHECK(memcmp(found_extension, extension, 3) == 0);
    EQUAL(value_of(&in, PROPID_M_BODY_TYPE)->ulVal, VT_BSTR);
    EQUAL(value_of(&in, PROPID_M_SENDERID_TYPE)->ulVal, MQMSG_SENDERID_TYPE_SID);
    CHECK(value_of(&in, PROPID_M_SENDERID_LEN)->ulVal >= 8 && sid[0] == 1);
    CHECK(value_of(&in, PROPID_M_SENTTIME)->ulVal > 1700000000);
    CHECK(value_of(&in, PROPID_M_LOOKUPID)->uhVal != 0);
    EQUAL(value_of(&in, PROPID_M_VERSION)->ulVal, 0x10);
    EQUAL(value_of(&in, PROPID_M_AUTHENTICATED)->bVal, 0);
    end();
}

static void defaults(void) {
    begin("defaults");
    struct bag out = {0}, in = {0};
    WCHAR label[10] = u"?", response[10] = u"?";
    OK(MQSendMessage(sender, message(&out), NULL)); /* without a property */
    static const PROPID fixed[] = {PROPID_M_PRIORITY, PROPID_M_DELIVERY, PROPID_M_BODY_SIZE, PROPID_M_BODY_TYPE,
                                   PROPID_M_TIME_TO_REACH_QUEUE, PROPID_M_TIME_TO_BE_RECEIVED,
                                   PROPID_M_ADMIN_QUEUE_LEN};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) add(&in, fixed[i], VT_NULL);
    add_text(&in, PROPID_M_LABEL, label);
    add_u4(&in, PROPID_M_LABEL_LEN, 10);
    add_text(&in, PROPID_M_RESP_QUEUE, response);
    add_u4(&in, PROPID_M_RESP_QUEUE_LEN, 10);
    OK(MQReceiveMessage(reader, 1000, MQ_ACTION_RECEIVE, message(&in), NULL, NULL, NULL, NULL));
    static const unsigned values[] = {3, 0, 0, 0, 345600, INFINITE, 0};
    for (int i = 0; i < 7; i++)
        EQUAL(in.values[i].vt == VT_UI1 ? in.values[i].bVal : in.values[i].ulVal, values[i]);
    CHECK(same(label, "") && same(response, ""));
    EQUAL(value_of(&in, PROPID_M_LABEL_LEN)->ulVal, 1);
    EQUAL(value_of(&in, PROPID_M_RESP_QUEUE_LEN)->ulVal, 0);
    end();
}

/* Every identifier with every VARTYPE: an error or success, never a crash; and the right type is never refused. */
static void every_vartype(void) {
    begin("vartypes");
    static const VARTYPE types[] = {VT_EMPTY, VT_NULL, VT_I2,  VT_I4,     VT_BOOL,  VT_I1,   VT_UI1,         VT_UI2,
                                    VT_UI4,   VT_I8,   VT_UI8, VT_LPWSTR, VT_CLSID, VT_BLOB, VT_VECTOR | VT_UI1,
                                    VT_VECTOR | VT_LPWSTR};
    static WCHAR text[64] = u"DIRECT=OS:.\\private$\\x";
    for (PROPID id = 0; id < 80; id++) {
        unsigned accepted = 0;
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            for (int receiving = 0; receiving < 2; receiving++) {
                struct bag bag = {0};
                GUID guid = {0};
                uint8_t bytes[64] = {0};
                MQPROPVARIANT *value = add(&bag, id, types[i]);
                if (types[i] == VT_LPWSTR) value->pwszVal = text;
                if (types[i] == VT_CLSID) value->puuid = &guid;
                if (types[i] & VT_VECTOR || types[i] == VT_BLOB) value->caub = (CAUB){20, bytes};
                HRESULT result = receiving ? MQReceiveMessage(reader, 0, MQ_ACTION_PEEK_CURRENT, message(&bag), NULL,
                                                              NULL, NULL, NULL)
                                           : MQSendMessage(sender, message(&bag), NULL);
                if (result == MQ_ERROR_PROPERTY) CHECK(FAILED(bag.statuses[0]));
                else accepted++;
            }
        }
        CHECK(accepted > 0 || id == PROPID_M_SOAP_HEADER);
    }
    end();
}

static void wrong_values(void) {
    begin("values");
    static const struct {
        PROPID id;
        VARTYPE type;
        unsigned value;
        HRESULT status;
    } wrong[] = {
        {PROPID_M_PRIORITY, VT_UI1, 8, MQ_ERROR_ILLEGAL_PROPERTY_VALUE},
        {PROPID_M_PRIORITY, VT_UI4, 1, MQ_ERROR_ILLEGAL_PROPERTY_VT},
        {PROPID_M_PRIORITY, VT_NULL, 1, MQ_ERROR_ILLEGAL_PROPERTY_VT},
        {PROPID_M_DELIVERY, VT_UI1, 2, MQ_ERROR_ILLEGAL_PROPERTY_VALUE},
        {PROPID_M_ACKNOWLEDGE, VT_UI1, 16, MQ_ERROR_ILLEGAL_PROPERTY_VALUE},
        {PROPID_M_JOURNAL, VT_UI1, 4, MQ_ERROR_ILLEGAL_PROPERTY_VALUE},
        {PROPID_M_PRIV_LEVEL, VT_UI4, 2, MQ_ERROR_ILLEGAL_PROPERTY_VALUE},
        {PROPID_M_PRIV_LEVEL, VT_UI4, 6, MQ_ERROR_ILLEGAL_PROPERTY_VALUE},
        {PROPID_M_AUTH_LEVEL, VT_UI4, 9, MQ_ERROR_ILLEGAL_PROPERTY_VALUE},
        {PROPID_M_SENDERID_TYPE, VT_UI4, 2, MQ_ERROR_ILLEGAL_PROPERTY_VALUE},
        {PROPID_M_LABEL, VT_LPWSTR, 0, MQ_ERROR_ILLEGAL_PROPERTY_VALUE}, /* no pointer */
        {PROPID_M_CONNECTOR_TYPE, VT_CLSID, 0, MQ_ERROR_ILLEGAL_PROPERTY_VALUE},
        {PROPID_M_BODY, VT_VECTOR | VT_UI1, 7, MQ_ERROR_ILLEGAL_PROPERTY_VALUE}, /* 7 bytes, no pointer */
        {PROPID_M_MSGID, VT_VECTOR | VT_UI1, 0, MQ_ERROR_ILLEGAL_PROPERTY_SIZE},
        {PROPID_M_CORRELATIONID, VT_VECTOR | VT_UI1, 0, MQ_ERROR_ILLEGAL_PROPERTY_SIZE},
        {PROPID_M_SOAP_BODY, VT_LPWSTR, 1, MQ_ERROR_PROPERTY_NOTALLOWED},
        {PROPID_M_SECURITY_CONTEXT, VT_UI4, 12, MQ_ERROR_BAD_SECURITY_CONTEXT},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct bag bag = {0};
        add_u4(&bag, PROPID_M_APPSPECIFIC, 1);
        MQPROPVARIANT *value = add(&bag, wrong[i].id, wrong[i].type);
        value->ulVal = wrong[i].value;
        if (wrong[i].id == PROPID_M_SOAP_BODY) value->pwszVal = (LPWSTR)u"x";
        RESULT(MQSendMessage(sender, message(&bag), NULL), MQ_ERROR_PROPERTY);
        RESULT(bag.statuses[1], wrong[i].status);
        RESULT(bag.statuses[0], MQ_OK);
        bag.props.message.aStatus = NULL; /* statuses are optional */
        RESULT(MQSendMessage(sender, &bag.props.message, NULL), MQ_ERROR_PROPERTY);
    }
    EQUAL(messages_in(u"DIRECT=OS:.\\private$\\values"), 0);
    end();
}

static void whole_calls(void) {
    begin("calls");
    struct bag bag = {0};
    WCHAR label[251];
    RESULT(MQSendMessage(sender, NULL, NULL), MQ_ERROR_INVALID_PARAMETER);
    add_u1(&bag, PROPID_M_PRIORITY, 1);
    MQMSGPROPS *props = message(&bag);
    props->aPropID = NULL;
    RESULT(MQSendMessage(sender, props, NULL), MQ_ERROR_INVALID_PARAMETER);
    props = message(&bag);
    props->aPropVar = NULL;
    RESULT(MQSendMessage(sender, props, NULL), MQ_ERROR_INVALID_PARAMETER);
    props = message(&bag);
    props->cProp = 100000;
    RESULT(MQSendMessage(sender, props, NULL), MQ_ERROR_TOO_MANY_PROPERTIES);

    for (int i = 0; i < 250; i++) label[i] = 'x';
    label[250] = 0;
    RESULT(send_text(sender, "x", label, NULL), MQ_ERROR_LABEL_TOO_LONG);
    label[249] = 0;
    OK(send_text(sender, "x", label, NULL));
    RESULT(send_text(sender, "x", u"half \xD800 pair", NULL), MQ_ERROR_PROPERTY);

    struct bag doubled = {0};
    add_u1(&doubled, PROPID_M_PRIORITY, 1);
    add_u1(&doubled, PROPID_M_PRIORITY, 2);
    add_u4(&doubled, PROPID_M_ARRIVEDTIME, 2);
    add_u4(&doubled, 9999, 2);
    add_u1(&doubled, PROPID_M_TRACE, 1);
    RESULT(MQSendMessage(sender, message(&doubled), NULL), MQ_INFORMATION_PROPERTY);
    static const HRESULT statuses[] = {MQ_OK, MQ_INFORMATION_DUPLICATE_PROPERTY, MQ_INFORMATION_PROPERTY_IGNORED,
                                       MQ_INFORMATION_UNSUPPORTED_PROPERTY, MQ_INFORMATION_UNSUPPORTED_PROPERTY};
    for (int i = 0; i < 5; i++) RESULT(doubled.statuses[i], statuses[i]);

    struct bag connector = {0};
    GUID guid = {0};
    add(&connector, PROPID_M_CLASS, VT_UI2)->uiVal = MQMSG_CLASS_REPORT;
    RESULT(MQSendMessage(sender, message(&connector), NULL), MQ_ERROR_MISSING_CONNECTOR_TYPE);
    add(&connector, PROPID_M_CONNECTOR_TYPE, VT_CLSID)->puuid = &guid;
    OK(MQSendMessage(sender, message(&connector), NULL));

    struct bag conflict = {0};
    add_text(&conflict, PROPID_M_RESP_QUEUE, u"DIRECT=OS:a\\private$\\x");
    add_text(&conflict, PROPID_M_RESP_FORMAT_NAME, u"DIRECT=OS:a\\private$\\x");
    RESULT(MQSendMessage(sender, message(&conflict), NULL), MQ_ERROR_PROPERTIES_CONFLICT);

    struct bag acknowledged = {0};
    add_u1(&acknowledged, PROPID_M_ACKNOWLEDGE, MQMSG_ACKNOWLEDGMENT_POS_ARRIVAL);
    add_text(&acknowledged, PROPID_M_ADMIN_QUEUE, u"DIRECT=");
    CHECK(FAILED(MQSendMessage(sender, message(&acknowledged), NULL)));
    end();
}

static void sizes(void) {
    begin("sizes");
    size_t large = 4 << 20;
    uint8_t *body = calloc(1, large), *found = calloc(1, large);
    struct bag bag = {0};
    add_bytes(&bag, PROPID_M_BODY, body, large);
    CHECK(FAILED(MQSendMessage(sender, message(&bag), NULL))); /* with its headers larger than 4 MB */
    large -= 4096;
    for (size_t i = 0; i < large; i++) body[i] = (uint8_t)(i * 7);
    bag.values[0].caub.cElems = (ULONG)large;
    OK(MQSendMessage(sender, message(&bag), NULL));
    bag.values[0].caub.pElems = found;
    OK(MQReceiveMessage(reader, 5000, MQ_ACTION_RECEIVE, message(&bag), NULL, NULL, NULL, NULL));
    CHECK(memcmp(body, found, large) == 0);
    free(body);
    free(found);
    end();
}

/* Signed by the server with an internal certificate, then with a named one. */
static void certificates(void) {
    begin("signed");
    HANDLE context;
    static char nonsense[] = "not a certificate";
    CHECK(FAILED(MQRegisterCertificate(0, nonsense, sizeof nonsense)));
    RESULT(MQRegisterCertificate(4, NULL, 0), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQRegisterCertificate(0, NULL, 10), MQ_ERROR_INVALID_PARAMETER);
    OK(MQRegisterCertificate(MQCERT_REGISTER_ALWAYS, NULL, 0));
    RESULT(MQRegisterCertificate(MQCERT_REGISTER_IF_NOT_EXIST, NULL, 0), MQ_INFORMATION_INTERNAL_USER_CERT_EXIST);
    RESULT(MQGetSecurityContext(NULL, 0, NULL), MQ_ERROR_INVALID_PARAMETER);
    RESULT(MQGetSecurityContextEx(NULL, 7, &context), MQ_ERROR_INVALID_PARAMETER);
    OK(MQGetSecurityContext(NULL, 0, &context));
    struct bag bag = {0};
    add_u4(&bag, PROPID_M_AUTH_LEVEL, MQMSG_AUTH_LEVEL_ALWAYS);
    add(&bag, PROPID_M_SECURITY_CONTEXT, VT_UI8)->uhVal = (uintptr_t)context;
    OK(MQSendMessage(sender, message(&bag), NULL));
    MQFreeSecurityContext(context);
    MQFreeSecurityContext(context); /* an old handle does no harm */
    RESULT(MQSendMessage(sender, message(&bag), NULL), MQ_ERROR_PROPERTY);
    struct bag in = {0};
    add(&in, PROPID_M_AUTHENTICATED, VT_NULL);
    OK(MQReceiveMessage(reader, 1000, MQ_ACTION_RECEIVE, message(&in), NULL, NULL, NULL, NULL));
    EQUAL(in.values[0].bVal, 1);
    OK(MQGetSecurityContextEx(nonsense, sizeof nonsense, &context));
    bag.values[1].uhVal = (uintptr_t)context;
    CHECK(FAILED(MQSendMessage(sender, message(&bag), NULL))); /* it is not registered */
    MQFreeSecurityContext(context);
    struct bag named = {0};
    add_u4(&named, PROPID_M_AUTH_LEVEL, MQMSG_AUTH_LEVEL_SIG10);
    add_bytes(&named, PROPID_M_SENDER_CERT, nonsense, sizeof nonsense);
    CHECK(FAILED(MQSendMessage(sender, message(&named), NULL)));
    end();
}

const struct test_case SEND_CASES[] = {
    {"every_property", every_property}, {"defaults", defaults},   {"every_vartype", every_vartype},
    {"wrong_values", wrong_values},     {"whole_calls", whole_calls}, {"sizes", sizes},
    {"certificates", certificates},     {NULL, NULL},
};
