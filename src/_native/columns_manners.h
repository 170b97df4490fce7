/* A thread that lets all others go first, where the system knows of such threads. Never while it holds what they may wait for: on a busy machine it
   would keep the GIL until everybody else rests. What it reads stays as it is for so long, and the file grows: so others can call it back. */
#ifndef MSMQ_FAST_COLUMNS_MANNERS_H
#define MSMQ_FAST_COLUMNS_MANNERS_H

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whether the thread is in the background now: `take_part` brings it back. `who` tells others which one it is, 0: none. Refused, or a thread with a policy
   of its own: it goes on as it is. */
static inline int give_way(int background, int *who) {
#ifdef SCHED_IDLE
    struct sched_param none = {0};
    if (!background || sched_getscheduler(0) != SCHED_OTHER || sched_setscheduler(0, SCHED_IDLE, &none) != 0) return 0;
    __atomic_store_n(who, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
    return 1;
#else
    return 0;
#endif
}

static inline void take_part(int away, int *who) {
    struct sched_param none = {0};
    if (!away) return;
    __atomic_store_n(who, 0, __ATOMIC_RELEASE);
    sched_setscheduler(0, SCHED_OTHER, &none);
}

/* From another thread: it is to take part at once. Nothing is wrong if it has done so meanwhile. Whether there was one. */
static inline int call_back(int *who) {
    struct sched_param none = {0};
    int thread = __atomic_load_n(who, __ATOMIC_ACQUIRE);
    return thread != 0 && sched_setscheduler(thread, SCHED_OTHER, &none) == 0;
}

#endif
