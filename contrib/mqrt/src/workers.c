#include "workers.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

enum { MOST_WORKERS = 32, LINGER_MS = 200 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static struct job *first, **last = &first;
static unsigned workers, idle, queued;

/* Signals of people and of the shell stay with the threads of the program. The others are not blocked: the runtimes
 * of Mono and .NET stop threads by signals, and callbacks run managed code on these threads. */
bool thread_start(void *(*run)(void *), void *argument) {
    static const int ours_not[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGCHLD, SIGPIPE, SIGTSTP, SIGWINCH};
    sigset_t blocked, before;
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof ours_not / sizeof *ours_not; i++) sigaddset(&blocked, ours_not[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    pthread_t thread;
    bool started = pthread_create(&thread, NULL, run, argument) == 0;
    if (started) pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Waits for a job; false if none came for LINGER_MS. Call with `lock` held. */
static bool wait_for_job(void) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LINGER_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    idle++;
    while (first == NULL && pthread_cond_clockwait(&arrived, &lock, CLOCK_MONOTONIC, &until) == 0) {
    }
    idle--;
    return first != NULL;
}

/* A thread without work ends: at its end, Mono waits for each thread that has run managed code. */
static void *work(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    while (wait_for_job()) {
        struct job *job = first;
        first = job->next;
        if (first == NULL) last = &first;
        queued--;
        pthread_mutex_unlock(&lock);
        job->run(job);
        pthread_mutex_lock(&lock);
    }
    workers--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* A callback may wait for long in a call of its own. Another job then gets another thread, or two programs that wait
 * for each other's messages would stop. */
void workers_run(struct job *job) {
    pthread_mutex_lock(&lock);
    job->next = NULL;
    *last = job;
    last = &job->next;
    queued++;
    if (queued > idle && workers < MOST_WORKERS && thread_start(work, NULL)) workers++;
    pthread_cond_signal(&arrived);
    pthread_mutex_unlock(&lock);
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void in_child(void) {
    first = NULL;
    last = &first;
    workers = idle = queued = 0;
    arrived = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void prepare(void) { pthread_atfork(before_fork, after_fork, in_child); }
