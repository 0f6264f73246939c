/* A disk that remembers: preloaded into a process, it writes down what the process does to files whose path
   begins with POWER_CUT_FILE, in order, into the file POWER_CUT_LOG. power_cut.py reads it. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int journal = -1;
static char base[4096], folder[4096];

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void __attribute__((constructor)) begin(void) {
    const char *file = getenv("POWER_CUT_FILE"), *path = getenv("POWER_CUT_LOG");
    if (!file || !path) return;
    snprintf(base, sizeof base, "%s", file);
    snprintf(folder, sizeof folder, "%s", file);
    *strrchr(folder, '/') = 0;
    journal = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* kind, length of the path, offset, length of the data; then the path and the data */
static void note(char kind, const char *path, int64_t offset, const void *data, int64_t length) {
    int64_t head[4] = {kind, (int64_t)strlen(path), offset, length};
    struct iovec parts[3] = {{head, sizeof head}, {(void *)path, strlen(path)}, {(void *)data, length}};
    if (writev(journal, parts, 3) < 0) abort();
}

/* The path of an open file, if it is one of ours. */
static int ours(int file, char *path) {
    char link[64];
    if (journal < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, 4095);
    if (length < 0) return 0;
    path[length] = 0;
    return strncmp(path, base, strlen(base)) == 0;
}

ssize_t write(int file, const void *data, size_t length) {
    char path[4096];
    int mine = ours(file, path);
    int64_t offset = mine ? lseek(file, 0, SEEK_CUR) : 0;
    ssize_t done = REAL(write)(file, data, length);
    if (mine && done > 0) note('w', path, offset, data, done);
    return done;
}

ssize_t pwrite(int file, const void *data, size_t length, off_t offset) {
    char path[4096];
    ssize_t done = REAL(pwrite)(file, data, length, offset);
    if (done > 0 && ours(file, path)) note('w', path, offset, data, done);
    return done;
}

ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) {
    return pwrite(file, data, length, offset);
}

int ftruncate(int file, off_t length) {
    char path[4096];
    int failed = REAL(ftruncate)(file, length);
    if (!failed && ours(file, path)) note('t', path, length, "", 0);
    return failed;
}

int ftruncate64(int file, off64_t length) { return ftruncate(file, length); }

static void note_sync(int file) {
    char path[4096];
    if (ours(file, path))
        note('s', path, 0, "", 0);
    else if (journal >= 0 && strcmp(path, folder) == 0)
        note('d', path, 0, "", 0);
}

int fsync(int file) {
    int failed = REAL(fsync)(file);
    if (!failed) note_sync(file);
    return failed;
}

int fdatasync(int file) {
    int failed = REAL(fdatasync)(file);
    if (!failed) note_sync(file);
    return failed;
}

int unlink(const char *path) {
    int failed = REAL(unlink)(path);
    if (!failed && journal >= 0 && strncmp(path, base, strlen(base)) == 0) note('u', path, 0, "", 0);
    return failed;
}

int rename(const char *from, const char *to) {
    int failed = REAL(rename)(from, to);
    if (!failed && journal >= 0 && strncmp(from, base, strlen(base)) == 0)
        note('r', from, 0, to, (int64_t)strlen(to));
    return failed;
}
