# Packets that are in memory and in no store: out of captures.

def packets(list found not None) -> Rows:
    """Kept packets as rows, for the columns that packets alone can fill; `priority` is theirs.

    TypeError: something among them is not bytes.
    """
    cdef Rows rows = Rows.__new__(Rows)
    cdef Row* row
    cdef bytes packet
    rows.finished = True
    for packet in found:
        if packet is None:
            raise TypeError("a packet is bytes")
        row = rows._add()
        Py_INCREF(packet)
        row.body = <PyObject*>packet
        row.packet = <const uint8_t*>PyBytes_AS_STRING(packet)
        row.size = <uint32_t>PyBytes_GET_SIZE(packet)
        row.state = ROW_AVAILABLE
        if row.size > 2:
            row.key = <uint64_t>(7 - (row.packet[2] & 7)) << 56
        rows.bytes += row.size
    return rows
