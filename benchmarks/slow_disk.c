/* A disk that does 200 syncs a second: preloaded into a process, a sync takes 5 ms, one after the other. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

static const long EACH = 5000000; /* ns */
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;

static int slowly(const char *name, int file) {
    struct timespec end;
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    pthread_mutex_lock(&disk);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += EACH;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    int result = sync(file);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
    pthread_mutex_unlock(&disk);
    return result;
}

int fsync(int file) { return slowly("fsync", file); }
int fdatasync(int file) { return slowly("fdatasync", file); }
