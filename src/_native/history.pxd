# Message identifiers that arrived before (MS-MQQB 3.1.5.8.1): a bounded table in the order of the last sighting.

cimport cython
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.batch cimport CommitListener, Writer
from msmq_fast._native.gather cimport Batch
from msmq_fast._native.framing cimport UserMessage


cdef enum:
    IDENTIFIER_SIZE = 20        # source queue manager GUID, then MessageID
    ORIGINS = 1024              # shares of the table
    KEY_SIZE = 2048             # of the long key of fingerprints: HISTORY_BLOCK


cdef struct Identity:
    # What makes two packets the same message. Any peer can name any identifier; the fingerprint covers what was sent under it.
    uint8_t identifier[IDENTIFIER_SIZE]
    uint64_t fingerprint        # never 0 for a message that arrives
    uint64_t absent             # the state of the table in which it was not there, 0: none
    uint32_t lifetime           # seconds that the message has; one that had fewer is not the same message


cdef enum Sighting:
    SIGHTING_NEW = 0
    SIGHTING_DURABLE = 1        # arrived before and its disposition is settled
    SIGHTING_PENDING = 2        # arrived before, its commit is under way


cdef struct HistoryEntry:
    uint8_t identifier[IDENTIFIER_SIZE]
    uint32_t seen               # Unix seconds
    uint64_t fingerprint        # 0: of a store that kept none; any content is the same message
    uint64_t generation         # 0: durable, express, or a free entry
    uint64_t sighting           # its number
    int32_t older, newer        # neighbours of the same origin in the order of sighting, -1 at the ends
    uint32_t origin
    uint32_t lifetime


cdef struct Share:
    int32_t oldest, newest      # the entries of one origin
    int32_t count


@cython.final
cdef class DuplicateHistory(CommitListener):
    cdef HistoryEntry* _entries
    cdef int32_t* _slots        # hash table: index of an entry, -1 for none
    cdef uint64_t _mask
    cdef int32_t _capacity, _count, _free
    cdef uint64_t _sightings    # so far
    cdef uint64_t _changes      # of which identities are in the table
    cdef uint64_t _generation   # of the newest batch that holds pending entries
    cdef Batch* _batch          # that batch, unless it has ended
    cdef uint64_t _settled      # every generation up to this one is durable
    cdef uint64_t[2] _seed      # secret: neither places in the table nor fingerprints can be calculated elsewhere
    cdef uint8_t[KEY_SIZE] _key # made of the seed
    cdef bint _wide             # this processor has AVX2
    cdef Share[ORIGINS] _shares
    cdef int32_t _active        # origins with an entry
    cdef uint32_t _largest      # an origin with at least its share of a full table, found when it is needed
    cdef int32_t _unprinted     # entries without a fingerprint
    cdef public uint32_t lifetime
    # The identity of a UserMessage: the same for every copy that its sender transmits, with whatever hop count, by whatever way.
    # That of an encrypted one is of what its body is now: give the opened packet where that is for this queue manager.
    cdef void identify(self, const uint8_t* packet, const UserMessage* m, Identity* identity) noexcept
    # What is known of a message; a hit is refreshed. Nothing is inserted.
    cdef Sighting sight(self, Identity* identity, uint32_t now) noexcept
    # With a writer the entry shares the fate of its current batch: to be called inside the unit that stores the message.
    # `origin`, below ORIGINS, names the share of the table that it uses.
    cdef int remember(self, const Identity* identity, uint32_t origin, uint32_t now, Writer writer) except -1
    cdef int _attach(self, Writer writer) except -1
    cdef bint knows(self, const Identity* identity) noexcept
    cdef inline int32_t _find(self, const Identity* identity) noexcept
    cdef inline int32_t _probe(self, const uint8_t* identifier, uint64_t fingerprint) noexcept
    cdef inline uint64_t _hash(self, const uint8_t* identifier, uint64_t fingerprint) noexcept
    cdef uint64_t _absorb_parts(self, uint64_t hash, const uint8_t* packet, const UserMessage* m, size_t size) noexcept
    cdef inline uint64_t _absorb(self, uint64_t hash, const uint8_t* data, size_t size) noexcept
    cdef int32_t _victim(self, uint32_t origin) noexcept
    cdef inline void _unlink(self, int32_t index) noexcept
    cdef inline void _link_newest(self, int32_t index) noexcept
    cdef void _forget(self, int32_t index) noexcept
    cdef list _of(self, uint32_t origin)
