/* Preloaded: while the file named by HANGING_SYNC exists, a sync does not end; once the file named by FAILING_SYNC
   exists, every sync reports an I/O error. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int fails(void) {
    const char *hanging = getenv("HANGING_SYNC");
    while (hanging != NULL && access(hanging, F_OK) == 0)
        usleep(5000);
    const char *trigger = getenv("FAILING_SYNC");
    if (trigger == NULL || access(trigger, F_OK) != 0)
        return 0;
    errno = EIO;
    return 1;
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (real == NULL)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return fails() ? -1 : real(fd);
}

int fsync(int fd) {
    static int (*real)(int);
    if (real == NULL)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return fails() ? -1 : real(fd);
}
