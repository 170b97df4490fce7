/* Threads that run the callbacks of programs. */
#ifndef MQRT_WORKERS_H
#define MQRT_WORKERS_H

#include <stdbool.h>

struct job {
    struct job *next;
    void (*run)(struct job *job); /* owns the job */
};

/* Runs the job on one of at most 32 threads, in the order of the calls if a thread is free. */
void workers_run(struct job *job);

/* Starts a detached thread that leaves the signals of the program alone. False: there is none. */
bool thread_start(void *(*run)(void *), void *argument);

#endif
