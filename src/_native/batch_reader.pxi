# Bodies, read on a native thread.

cdef class ReadListener:
    cdef int body_read(self, uint64_t token, object body, int status) except -1:
        raise NotImplementedError


cdef class BodyCallback(ReadListener):
    """Calls a Python function with (body or None, status); for cold operations and tests."""
    cdef object function

    def __cinit__(self, function):
        self.function = function

    cdef int body_read(self, uint64_t token, object body, int status) except -1:
        self.function(body, status)
        return 0


cdef class Reader:
    """Reads packets by content id without stalling the loop on a cold page."""

    cdef int fetch(self, uint64_t content_id, uint32_t size, ReadListener listener, uint64_t token) except -1:
        raise NotImplementedError

    cpdef int complete(self) except -1:
        raise NotImplementedError

    def read(self, uint64_t content_id, uint32_t size, function):
        """Calls function(body or None, status) on the loop."""
        self.fetch(content_id, size, BodyCallback(function), 0)


@cython.no_gc_clear  # the environment must outlive the thread
cdef class LmdbReader(Reader):
    """The native reader thread. The loop watches `fileno()` and calls `complete()`."""

    def __cinit__(self, LmdbTables tables not None):
        self._tables = tables
        self._thread = reader_start(&tables._store)
        if self._thread == NULL:
            raise StoreError("cannot start the reader thread")
        tables._users += 1

    def __dealloc__(self):
        cdef ReadRequest* request
        cdef ReadRequest* following
        if self._thread == NULL:
            return
        if not self._closed:
            reader_stop(self._thread)
            self._tables._users -= 1
        request = reader_take(self._thread)
        while request != NULL:
            following = request.next
            Py_DECREF(<object>request.body)
            Py_DECREF(<object>request.listener)
            free(request)
            request = following
        reader_free(self._thread)

    cdef int fetch(self, uint64_t content_id, uint32_t size, ReadListener listener, uint64_t token) except -1:
        cdef ReadRequest* request
        cdef bytes body
        if self._closed:
            raise StoreError("the store is closed")
        body = PyBytes_FromStringAndSize(NULL, size)
        request = <ReadRequest*>malloc(sizeof(ReadRequest))
        if request == NULL:
            PyErr_NoMemory()
        request.content_id = content_id
        request.size = size
        request.token = token
        request.target = PyBytes_AS_STRING(body)
        Py_INCREF(body)
        Py_INCREF(listener)
        request.body = <PyObject*>body
        request.listener = <PyObject*>listener
        reader_give(self._thread, request)
        return 0

    cpdef int complete(self) except -1:
        cdef ReadRequest* request
        cdef ReadRequest* following
        cdef object fault = None
        drain_event((<ReaderFields*>self._thread).event_fd)
        request = reader_take(self._thread)
        while request != NULL:
            following = request.next
            body, listener = <object>request.body, <ReadListener>request.listener
            Py_DECREF(body)
            Py_DECREF(listener)
            try:
                (<ReadListener>listener).body_read(request.token, None if request.status else body, request.status)
            except Exception as error:
                fault = also(fault, error)
            free(request)
            request = following
        if fault is not None:
            raise fault
        return 0

    def fileno(self):
        """Readable when `complete` has something to do."""
        return (<ReaderFields*>self._thread).event_fd

    @property
    def transactions(self):
        """Read transactions so far; groups of requests share one."""
        return (<ReaderFields*>self._thread).transactions

    def close(self):
        """Reads what was asked for, tells the listeners, ends the thread; closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        with nogil:
            reader_stop(self._thread)
        self._tables._users -= 1
        self.complete()


cdef class MemoryReader(Reader):
    """Answers when `complete` is called."""

    def __cinit__(self, MemoryTables tables not None):
        self._tables = tables
        self._requests = []

    @property
    def waiting(self):
        """How many requests `complete` would answer."""
        return len(self._requests)

    cdef int fetch(self, uint64_t content_id, uint32_t size, ReadListener listener, uint64_t token) except -1:
        self._requests.append((content_id, size, listener, token))
        return 0

    cpdef int complete(self) except -1:
        cdef ReadListener listener
        cdef object fault = None
        requests, self._requests = self._requests, []
        for content_id, size, listener, token in requests:
            try:
                body, status = self._tables.read_content(content_id, size), 0
            except StoreError as error:
                body, status = None, error.status
            try:
                listener.body_read(token, body, status)
            except Exception as error:
                fault = also(fault, error)
        if fault is not None:
            raise fault
        return 0

    def close(self):
        """Answers what was asked for."""
        self.complete()
