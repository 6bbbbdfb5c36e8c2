/* Stands between the service and its files: the nth call fails, once or from then on, hangs, or writes half. One counter
 * for all threads. It also keeps what a disk would hold after a power cut: a write reaches it with the sync that follows,
 * and what was written before a sync that failed never does, though the machine goes on showing it and later syncs
 * succeed. It moves the clock, too.
 *
 * Calls go to the kernel directly and nothing is allocated: the service brings its own allocator, which asks for the time
 * before any library is ready. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { READ = 1, WRITE = 2, OPEN = 4, CLOSE = 8, SYNC = 16, RENAME = 32, UNLINK = 64, TRUNCATE = 128 };
enum { FAILS = 1, FULL = 2, SHORT = 3, HANGS = 4, KILLS = 5 };

/* The test reads and writes these, in this order. */
struct control {
    volatile long armed, ops, at, sticky, kind, calls, fired, hanging, release, seconds, log_gone, fired_op;
};
static struct control *control;
static char directory[256], shadow[256];

#define FILES 1024
#define RANGES 200000
static char paths[FILES][256];
static struct range { int file; off_t from, to; } ranges[RANGES];
static int used;
static char names[64][256];
static int named;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("FAULT_CONTROL");
    if (!at) return;
    snprintf(directory, sizeof directory, "%s", getenv("FAULT_DIRECTORY"));
    if (getenv("FAULT_SHADOW")) snprintf(shadow, sizeof shadow, "%s", getenv("FAULT_SHADOW"));
    int fd = (int)syscall(SYS_openat, AT_FDCWD, at, O_RDWR);
    void *map = mmap(0, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) abort();
    control = map;
    syscall(SYS_close, fd);
}

/* The name below the directory, for what is a file of the service. The log's index is memory, and no file. */
static const char *ours(const char *path) {
    static __thread char whole[512];
    if (!control) return 0;
    if (path[0] != '/') {
        char here[256];
        if (syscall(SYS_getcwd, here, sizeof here) < 0) return 0;
        snprintf(whole, sizeof whole, "%s/%s", here, path);
    } else {
        snprintf(whole, sizeof whole, "%s", path);
    }
    size_t length = strlen(directory);
    if (strncmp(whole, directory, length) || whole[length] != '/' || strstr(whole, "-shm") || strstr(whole, ".lock")) return 0;
    return whole + length + 1;
}

static const char *of(int fd) { return control && fd >= 0 && fd < FILES && paths[fd][0] ? paths[fd] : 0; }

/* Whether this call is the one. Sets errno. */
static int fires(int op) {
    if (!control->armed || !(control->ops & op)) return 0;
    long call = __sync_add_and_fetch(&control->calls, 1);
    if (!control->at || call < control->at || (call > control->at && !control->sticky)) return 0;
    int kind = (int)control->kind;
    if (kind == FULL && !(op & (WRITE | OPEN | SYNC | RENAME))) return 0;
    if (kind == SHORT && op != WRITE) return 0;
    __sync_add_and_fetch(&control->fired, 1);
    control->fired_op = op;
    if (kind == KILLS) {
        syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
        for (;;) pause();
    }
    if (kind == HANGS) {
        __sync_add_and_fetch(&control->hanging, 1);
        struct timespec pause = {0, 5000000};
        while (!control->release) syscall(SYS_nanosleep, &pause, 0);
        __sync_sub_and_fetch(&control->hanging, 1);
        return 0;
    }
    errno = kind == FULL ? ENOSPC : EIO;
    return kind;
}

static void beside(char *to, const char *name) {
    int at = snprintf(to, 512, "%s/", shadow);
    for (; *name && at < 511; name++) to[at++] = *name == '/' ? '@' : *name;
    to[at] = 0;
}

static int file_of(const char *name) {
    for (int file = 0; file < named; file++)
        if (!strcmp(names[file], name)) return file;
    if (named == 64) abort();
    snprintf(names[named], sizeof names[named], "%s", name);
    return named++;
}

static void wrote(const char *name, off_t from, off_t to) {
    if (!shadow[0] || to <= from) return;
    pthread_mutex_lock(&lock);
    if (used == RANGES) abort();
    ranges[used++] = (struct range){file_of(name), from, to};
    pthread_mutex_unlock(&lock);
}

/* A sync has come back: what was written reached the disk, or never will. */
static void synced(const char *name, int is_done) {
    static char page[65536];
    char from[600], to[512];
    if (!shadow[0]) return;
    pthread_mutex_lock(&lock);
    int file = file_of(name), kept = 0, in = -1, out = -1;
    if (is_done) {
        snprintf(from, sizeof from, "%s/%s", directory, name);
        beside(to, name);
        in = (int)syscall(SYS_openat, AT_FDCWD, from, O_RDONLY);
        out = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT, 0600);
    }
    for (int at = 0; at < used; at++) {
        if (ranges[at].file != file) {
            ranges[kept++] = ranges[at];
            continue;
        }
        for (off_t next = ranges[at].from; in >= 0 && out >= 0 && next < ranges[at].to;) {
            size_t wanted = (size_t)(ranges[at].to - next) < sizeof page ? (size_t)(ranges[at].to - next) : sizeof page;
            long got = syscall(SYS_pread64, in, page, wanted, next);
            if (got <= 0) break;
            syscall(SYS_pwrite64, out, page, got, next);
            next += got;
        }
    }
    used = kept;
    if (in >= 0) syscall(SYS_close, in);
    if (out >= 0) syscall(SYS_close, out);
    pthread_mutex_unlock(&lock);
}

static int opened(int at, const char *path, int flags, mode_t mode) {
    const char *name = ours(path);
    if (name && fires(OPEN)) return -1;
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 0 && fd < FILES) {
        snprintf(paths[fd], sizeof paths[fd], "%s", name ? name : "");
        if (name && shadow[0] && (flags & O_TRUNC)) {
            char to[512];
            beside(to, name);
            syscall(SYS_truncate, to, 0);
        }
    }
    return fd;
}

#define MODE va_list list; va_start(list, flags); mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; va_end(list)
int open(const char *path, int flags, ...) { MODE; return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE; return opened(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE; return opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE; return opened(at, path, flags, mode); }

int close(int fd) {
    const char *name = of(fd);
    int failed = name && fires(CLOSE);
    if (name) paths[fd][0] = 0;
    int done = (int)syscall(SYS_close, fd);
    return failed ? (errno = EIO, -1) : done;
}

static ssize_t put(int fd, const void *bytes, size_t count, off_t at, int is_placed) {
    const char *name = of(fd);
    int failed = name ? fires(WRITE) : 0;
    if (failed && failed != SHORT) return -1;
    if (failed == SHORT && count > 1) count /= 2;
    if (!is_placed) {
        off_t from = name ? (off_t)syscall(SYS_lseek, fd, 0, SEEK_CUR) : 0;
        ssize_t done = syscall(SYS_write, fd, bytes, count);
        if (name && done > 0) wrote(name, from, from + done);
        return done;
    }
    ssize_t done = syscall(SYS_pwrite64, fd, bytes, count, at);
    if (name && done > 0) wrote(name, at, at + done);
    return done;
}
ssize_t write(int fd, const void *bytes, size_t count) { return put(fd, bytes, count, 0, 0); }
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return put(fd, bytes, count, at, 1); }
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) { return put(fd, bytes, count, at, 1); }

ssize_t read(int fd, void *bytes, size_t count) { return of(fd) && fires(READ) ? -1 : syscall(SYS_read, fd, bytes, count); }
ssize_t pread(int fd, void *bytes, size_t count, off_t at) { return of(fd) && fires(READ) ? -1 : syscall(SYS_pread64, fd, bytes, count, at); }
ssize_t pread64(int fd, void *bytes, size_t count, off_t at) { return of(fd) && fires(READ) ? -1 : syscall(SYS_pread64, fd, bytes, count, at); }

static int sync_by(long call, int fd) {
    const char *name = of(fd);
    int failed = name ? fires(SYNC) : 0;
    int done = failed ? -1 : (int)syscall(call, fd);
    int why = errno;
    if (name) synced(name, done == 0);
    errno = why;
    return done;
}
int fsync(int fd) { return sync_by(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }

static int cut(int fd, off_t length) {
    const char *name = of(fd);
    if (name && fires(TRUNCATE)) return -1;
    int done = (int)syscall(SYS_ftruncate, fd, length);
    if (name && done == 0 && shadow[0]) {
        char to[512];
        beside(to, name);
        syscall(SYS_truncate, to, length);
    }
    return done;
}
int ftruncate(int fd, off_t length) { return cut(fd, length); }
int ftruncate64(int fd, off_t length) { return cut(fd, length); }

int rename(const char *from, const char *to) {
    char old[512], new[512];
    const char *name = ours(to);
    if (name && fires(RENAME)) return -1;
    if (name) beside(new, name);
    int done = (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
    const char *was = done == 0 && name ? ours(from) : 0;
    if (was && shadow[0]) {
        beside(old, was);
        syscall(SYS_renameat, AT_FDCWD, old, AT_FDCWD, new);
    }
    return done;
}

int linkat(int at, const char *from, int there, const char *to, int flags) {
    char old[512], new[512];
    const char *name = ours(to);
    if (name && fires(RENAME)) return -1;
    if (name) beside(new, name);
    int done = (int)syscall(SYS_linkat, at, from, there, to, flags);
    const char *was = done == 0 && name ? ours(from) : 0;
    if (was && shadow[0]) {
        beside(old, was);
        syscall(SYS_linkat, AT_FDCWD, old, AT_FDCWD, new, 0);
    }
    return done;
}

int unlink(const char *path) {
    const char *name = ours(path);
    if (name && fires(UNLINK)) return -1;
    if (name && control->fired && strstr(name, "-wal")) control->log_gone++;
    int done = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (name && done == 0 && shadow[0]) {
        char to[512];
        beside(to, name);
        syscall(SYS_unlinkat, AT_FDCWD, to, 0);
    }
    return done;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int done = (int)syscall(SYS_clock_gettime, clock, time);
    if (done == 0 && control && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += control->seconds;
    return done;
}
