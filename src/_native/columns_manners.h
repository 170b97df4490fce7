/* A thread that lets all others go first, where the system knows of such threads. Never while it holds what they may wait for: on a busy machine it
   would keep the GIL until everybody else rests. */
#ifndef MSMQ_FAST_COLUMNS_MANNERS_H
#define MSMQ_FAST_COLUMNS_MANNERS_H

#include <sched.h>

/* Whether the thread is in the background now: `take_part` brings it back. Refused, or a thread with a policy of its own: it goes on as it is. */
static inline int give_way(int background) {
#ifdef SCHED_IDLE
    struct sched_param none = {0};
    return background && sched_getscheduler(0) == SCHED_OTHER && sched_setscheduler(0, SCHED_IDLE, &none) == 0;
#else
    return background && 0;
#endif
}

static inline void take_part(int away) {
    struct sched_param none = {0};
    if (away) sched_setscheduler(0, SCHED_OTHER, &none);
}

#endif
