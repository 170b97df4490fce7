/* Runs the calling thread at SCHED_IDLE if the system has that policy.
 *
 * Never call this while holding the GIL or a lock: on a busy machine, the thread would keep it until all other threads are idle.
 * Meanwhile a read transaction pins its pages, and the file grows. Therefore another thread can boost this one. */
#ifndef MSMQ_FAST_COLUMNS_PRIORITY_H
#define MSMQ_FAST_COLUMNS_PRIORITY_H

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns whether the thread now runs in the background; `leave_background` ends this. `thread` is set to its id for `boost`, 0 for
 * none. If the system refuses, or the thread already has another policy, its policy does not change. */
static inline int enter_background(int background, int *thread) {
#ifdef SCHED_IDLE
    struct sched_param none = {0};
    if (!background || sched_getscheduler(0) != SCHED_OTHER || sched_setscheduler(0, SCHED_IDLE, &none) != 0) return 0;
    __atomic_store_n(thread, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    return 1;
#else
    return 0;
#endif
}

static inline void leave_background(int away, int *thread) {
    struct sched_param none = {0};
    if (!away) return;
    __atomic_store_n(thread, 0, __ATOMIC_RELEASE);
    sched_setscheduler(0, SCHED_OTHER, &none);
}

/* Called from another thread: ends the background mode at once. It may have ended already. Returns whether there was a thread to boost. */
static inline int boost(int *thread) {
    struct sched_param none = {0};
    int id = __atomic_load_n(thread, __ATOMIC_ACQUIRE);
    return id != 0 && sched_setscheduler(id, SCHED_OTHER, &none) == 0;
}

#endif
