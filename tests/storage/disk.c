/* A disk that can fail, and that tells what it was given: loaded before libc (LD_PRELOAD).

   Every write, truncation and flush of an index's database, log and journal is done, and noted in
   the file named by disk_begin() in the order in which it was done. disk_fail() makes some fail. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct note { char op, file, pad[6]; long long place, size; };

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int notes = -1;
static char failing;            /* 'W', 'S' or 'T': the operation that fails */
static long long countdown = -1; /* so many of them succeed first */
static long long times;          /* and so many fail then */
static int with;                 /* this errno */

void disk_begin(const char *path) { notes = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600); }

void disk_fail(char op, long long after, long long how_often, int error) {
    pthread_mutex_lock(&turn);
    failing = op, countdown = after, times = how_often, with = error;
    pthread_mutex_unlock(&turn);
}

/* How many failures are still to come. */
long long disk_left(void) { return times; }

static char kind(const char *path) {
    const char *name = strstr(path, "index.sqlite");
    if (notes < 0 || !name) return 0;
    if (!name[12]) return 'd';
    if (!strcmp(name + 12, "-wal")) return 'w';
    return strcmp(name + 12, "-journal") ? 0 : 'j';
}

static char kind_of(int fd) {
    char link[64], path[4096];
    if (notes < 0 || fd == notes) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return kind(path);
}

static void tell(char op, char file, long long place, const void *data, long long size) {
    struct note head = {op, file, {0}, place, size};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)data, data ? size : 0}};
    if (writev(notes, parts, 2) < 0) _exit(99);
}

/* What the caller wants to find again among the notes. */
void disk_mark(const char *data, long long size) {
    pthread_mutex_lock(&turn);
    tell('M', 0, 0, data, size);
    pthread_mutex_unlock(&turn);
}

static int fails(char op) {
    if (op != failing || times <= 0) return 0;
    if (countdown > 0) { countdown--; return 0; }
    times--;
    return 1;
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* A write that fails does half of what it should first, as on a disk that is full. */
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    REAL(pwrite64);
    char file = kind_of(fd);
    if (!file) return real(fd, data, size, place);
    pthread_mutex_lock(&turn);
    int failed = fails('W');
    ssize_t done = real(fd, data, failed ? size / 2 : size, place);
    int error = errno;
    if (done > 0) tell('W', file, place, data, done);
    pthread_mutex_unlock(&turn);
    errno = failed ? with : error;
    return failed ? -1 : done;
}

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    char file = kind_of(fd);
    if (!file) return real(fd, data, size);
    return pwrite64(fd, data, size, lseek(fd, 0, SEEK_CUR)) < 0 ? -1 : (lseek(fd, size, SEEK_CUR), (ssize_t)size);
}

int ftruncate64(int fd, off64_t size) {
    REAL(ftruncate64);
    char file = kind_of(fd);
    if (!file) return real(fd, size);
    pthread_mutex_lock(&turn);
    int failed = fails('T'), done = failed ? -1 : real(fd, size);
    if (done == 0) tell('T', file, size, 0, 0);
    pthread_mutex_unlock(&turn);
    if (failed) errno = with;
    return done;
}

/* A flush that fails leaves the pages counted as written: 'F'. */
static int flush(int fd, int (*real)(int)) {
    char file = kind_of(fd);
    if (!file) return real(fd);
    pthread_mutex_lock(&turn);
    int failed = fails('S');
    tell(failed ? 'F' : 'S', file, 0, 0, 0);
    pthread_mutex_unlock(&turn);
    if (failed) errno = with;
    return failed ? -1 : 0;
}

int fsync(int fd) { REAL(fsync); return flush(fd, real); }
int fdatasync(int fd) { REAL(fdatasync); return flush(fd, real); }

int unlink(const char *path) {
    REAL(unlink);
    char file = kind(path);
    if (!file) return real(path);
    pthread_mutex_lock(&turn);
    int done = real(path);
    if (done == 0) tell('U', file, 0, 0, 0);
    pthread_mutex_unlock(&turn);
    return done;
}
