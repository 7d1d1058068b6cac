/* Preloaded: clocks that a test sets. SHIFTS names a file with two numbers of seconds: what the machine has slept, and
 * how far the time of day was set. Without the file clocks are as they are. CLOCK_MONOTONIC never jumps, as in a sleep. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    char text[64] = {0};
    if (result != 0 || (clock != CLOCK_BOOTTIME && clock != CLOCK_REALTIME))
        return result;
    int file = open(SHIFTS, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return result;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return result;
    char *rest;
    long long slept = strtoll(text, &rest, 10);
    long long set = strtoll(rest, NULL, 10);
    now->tv_sec += clock == CLOCK_BOOTTIME ? slept : slept + set;
    return result;
}
