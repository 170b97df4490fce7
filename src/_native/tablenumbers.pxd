# The tables of the store. Made by setup.py of store/decode.py: do not edit.

cdef enum:  # Table
    TABLE_META = 0
    TABLE_POSITION = 1
    TABLE_CONTENT = 2
    TABLE_FEED = 3
    TABLE_HISTORY = 4
    TABLE_QUEUE = 5
    TABLE_QUEUE_INDEX = 6
    TABLE_DIRECTORY = 7
    TABLE_SEQUENCE = 8
    TABLE_AUDIT = 9
    TABLE_COUNT = 10
