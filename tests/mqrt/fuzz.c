/* Feeds mutated replies to the reader of msgpack and to everything that reads messages from it.
 *
 * `fuzz SEED COUNT FILE...` changes the files at random and prints how many inputs were valid. Each input lies at the
 * end of its allocation, where the sanitizer sees each byte that is read too many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "msgpack.h"
#include "text.h"

static unsigned long valid;

static void fill(const uint8_t *data, size_t size) {
    struct message message;
    WCHAR label[8], queue[16];
    uint8_t body[32], id[20];
    PROPID ids[] = {PROPID_M_BODY, PROPID_M_BODY_SIZE, PROPID_M_LABEL, PROPID_M_LABEL_LEN, PROPID_M_RESP_QUEUE,
                    PROPID_M_RESP_QUEUE_LEN, PROPID_M_MSGID, PROPID_M_LOOKUPID, PROPID_M_SENDERID_LEN};
    MQPROPVARIANT values[9] = {{.vt = VT_VECTOR | VT_UI1}, {.vt = VT_UI4}, {.vt = VT_LPWSTR}, {.vt = VT_UI4},
                               {.vt = VT_LPWSTR}, {.vt = VT_UI4}, {.vt = VT_VECTOR | VT_UI1}, {.vt = VT_UI8},
                               {.vt = VT_UI4}};
    HRESULT statuses[9];
    values[0].caub = (CAUB){sizeof body, body};
    values[2].pwszVal = label;
    values[3].ulVal = 8;
    values[4].pwszVal = queue;
    values[5].ulVal = 16;
    values[6].caub = (CAUB){sizeof id, id};
    MQMSGPROPS props = {9, ids, values, statuses};
    struct message_props wanted;
    if (message_parse(data, size, &message) && message_props(&props, TO_RECEIVE, &wanted) == MQ_OK)
        (void)message_fill(&wanted, &message);
}

static void one_input(const uint8_t *given, size_t size) {
    uint8_t *data = malloc(size + !size);
    memcpy(data, given, size);
    struct texts texts = {0};
    struct mp_reader map = mp_over(data, size), at;
    valid += mp_is_one_value(data, size);
    (void)map_number(map, "messages", 0);
    struct mp_value name = map_text(map, "name");
    if (name.type == MP_STR) {
        WCHAR *copy = utf16_copy(name.bytes, name.size);
        GUID guid;
        (void)guid_parse((const char *)name.bytes, name.size, &guid);
        free(copy);
    }
    if (mp_find(map, "queues", &at)) (void)mp_skip(&at);
    (void)map_texts(map, "subqueues", &texts);
    texts_free(&texts);
    fill(data, size);
    free(data);
}

static uint64_t state;

static uint32_t drawn(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

int main(int count, char **arguments) {
    static uint8_t seeds[32][8192], input[8192];
    size_t sizes[32];
    int files = 0;
    if (count < 4) return 2;
    state = strtoull(arguments[1], NULL, 10);
    for (; files < count - 3 && files < 32; files++) {
        FILE *file = fopen(arguments[3 + files], "rb");
        if (file == NULL) return 2;
        sizes[files] = fread(seeds[files], 1, sizeof seeds[files], file);
        fclose(file);
    }
    for (unsigned long run = strtoul(arguments[2], NULL, 10); run > 0; run--) {
        static const uint8_t heads[] = {0x90, 0x9f, 0x8f, 0xc4, 0xc6, 0xd9, 0xdb,
                                        0xdd, 0xdf, 0xcf, 0xd3, 0xff, 0xc1, 0};
        uint32_t which = drawn((uint32_t)files);
        size_t size = sizes[which];
        memcpy(input, seeds[which], size);
        for (uint32_t changes = drawn(5); changes > 0 && size > 1; changes--) {
            uint32_t place = drawn((uint32_t)size);
            switch (drawn(4)) {
            case 0: input[place] = (uint8_t)drawn(256); break;
            case 1: input[place] = heads[drawn(sizeof heads)]; break;
            case 2: size = place + 1; break;
            default: /* leave a byte out */
                memmove(input + place, input + place + 1, size - place - 1);
                size--;
            }
        }
        one_input(input, size);
    }
    printf("%lu valid\n", valid);
    return 0;
}
