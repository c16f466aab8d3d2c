/* A file system as some networks have it. NO_LOCKS is the errno of each attempt to lock a file, and
 * NO_MEMORY that of each to share memory through one; unset or empty, all is well.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int told(const char *name) {
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}

static int control(const char *real, int file, int command, void *argument) {
    int (*next)(int, int, ...) = dlsym(RTLD_NEXT, real);
    int error = told("NO_LOCKS");
    if (error && (command == F_SETLK || command == F_SETLKW || command == F_GETLK)) {
        errno = error;
        return -1;
    }
    return next(file, command, argument);
}

static void *map(const char *real, void *at, size_t size, int access, int flags, int file, off_t from) {
    void *(*next)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, real);
    int error = told("NO_MEMORY");
    if (error && file >= 0 && (flags & MAP_SHARED)) {
        errno = error;
        return MAP_FAILED;
    }
    return next(at, size, access, flags, file, from);
}

#define CONTROL(name)                                                                              \
    int name(int file, int command, ...) {                                                         \
        va_list more;                                                                              \
        va_start(more, command);                                                                   \
        void *argument = va_arg(more, void *);                                                     \
        va_end(more);                                                                              \
        return control(#name, file, command, argument);                                            \
    }

#define MAP(name)                                                                                  \
    void *name(void *at, size_t size, int access, int flags, int file, off_t from) {               \
        return map(#name, at, size, access, flags, file, from);                                    \
    }

CONTROL(fcntl)
CONTROL(fcntl64)
MAP(mmap)
MAP(mmap64)
