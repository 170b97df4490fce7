/* Numbers of the application protocol that the library uses: see docs/reference/application-protocol.md. */
#ifndef MQRT_FRAMES_H
#define MQRT_FRAMES_H

enum frame {
    F_HELLO = 0x01,
    F_STATS = 0x03,
    F_CREATE_QUEUE = 0x10,
    F_DELETE_QUEUE = 0x11,
    F_GET_QUEUE = 0x12,
    F_SET_QUEUE = 0x13,
    F_LIST_QUEUES = 0x14,
    F_SHOW_ACL = 0x15,
    F_PAGE_QUEUES = 0x18,
    F_OPEN = 0x20,
    F_CLOSE = 0x21,
    F_SEND = 0x22,
    F_RECEIVE = 0x23,
    F_LOOKUP = 0x24,
    F_PURGE = 0x2B,
    F_CURSOR_OPEN = 0x2C,
    F_CURSOR_CLOSE = 0x2D,
    F_CURSOR_READ = 0x2E,
    F_MOVE = 0x2F,
    F_LIST_OUTGOING = 0x30,
    F_SHOW_OUTGOING = 0x31,
    F_PAUSE_OUTGOING = 0x32,
    F_RESUME_OUTGOING = 0x33,
    F_PURGE_OUTGOING = 0x34,
    F_KICK_OUTGOING = 0x35,
    F_LIST_DIRECTORY = 0x40,
    F_SHOW_DIRECTORY = 0x41,
    F_BEGIN = 0x60,
    F_COMMIT = 0x61,
    F_ABORT = 0x62,
    F_REJECT = 0x65,
    F_LIST_CERTIFICATES = 0x70,
    F_CREATE_CERTIFICATE = 0x71,
    F_ADD_CERTIFICATE = 0x72,
    F_SHOW_KEYS = 0x74,
    F_REPLY = 0x80,
    F_ERROR = 0x81,
    F_SENT = 0x82,
    F_MESSAGE = 0x84,
};

enum { FRAME_HEADER = 9, FRAME_LEAST = 5 }; /* bytes: with the length field; of the smallest length field's value */

enum { SEND_IDS = 1, SEND_SINGLE = 4 };
enum { OUT_FIELDS = 22, IN_FIELDS = 27, LIMIT_FIELDS = 7 };
enum { MESSAGE_TRANSACTIONAL = 1, MESSAGE_AUTHENTICATED = 2 };

#endif
