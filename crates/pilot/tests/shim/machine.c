/* A machine whose wall clock and disk do what a test wants. Loaded before the C library, into the program under test.
 *
 * Only system calls in here, and nothing that allocates: the allocator itself asks for the time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The number in the file that an environment variable names; 0 when there is none. */
static long number_in(const char *variable) {
    const char *path = getenv(variable);
    if (path == NULL) return 0;
    int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    char text[32];
    long length = syscall(SYS_read, file, text, sizeof text);
    syscall(SYS_close, file);
    long number = 0;
    for (long at = 0; at < length && text[at] >= '0' && text[at] <= '9'; at++) number = number * 10 + (text[at] - '0');
    return number;
}

/* The wall clock alone is ahead: time since the start of the machine goes on as it does. */
int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += number_in("TEST_CLOCK_AHEAD_SECONDS");
    return (int)result;
}

/* A disk that takes its time. */
int fdatasync(int file) {
    long millis = number_in("TEST_SYNC_MILLIS");
    struct timespec pause = {.tv_sec = millis / 1000, .tv_nsec = millis % 1000 * 1000000};
    if (millis > 0) syscall(SYS_nanosleep, &pause, NULL);
    return (int)syscall(SYS_fdatasync, file);
}
