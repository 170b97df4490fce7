/* Shared by the native load generators: time, latency histogram, option parsing, JSON output. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

__attribute__((noreturn, format(printf, 1, 2))) static inline void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static inline void *need(void *memory)
{
    if (!memory) die("out of memory");
    return memory;
}

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* User and system time of this process in microseconds. */
static inline uint64_t cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000u + (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static inline void set_nonblocking(int fd)
{
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) die("fcntl: %s", strerror(errno));
}

/* Log-linear histogram of nanoseconds: 128 steps per power of two, so a reported value is within 0.8 %. */
enum { HIST_STEP_BITS = 7, HIST_STEPS = 1 << HIST_STEP_BITS, HIST_SIZE = (64 - HIST_STEP_BITS + 1) << HIST_STEP_BITS };

typedef struct {
    uint64_t count, sum, max;
    uint64_t bucket[HIST_SIZE];
} Histogram;

static inline void hist_add(Histogram *h, uint64_t ns)
{
    unsigned index;
    if (ns < HIST_STEPS) {
        index = (unsigned)ns;
    } else {
        unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - HIST_STEP_BITS;
        index = ((shift + 1) << HIST_STEP_BITS) + (unsigned)((ns >> shift) - HIST_STEPS);
    }
    h->bucket[index]++;
    h->count++;
    h->sum += ns;
    if (ns > h->max) h->max = ns;
}

/* The upper edge, in microseconds, of the bucket that holds the given fraction of all values. */
static inline double hist_quantile_us(const Histogram *h, double fraction)
{
    uint64_t rank = (uint64_t)(fraction * (double)h->count), seen = 0;
    if (!h->count) return 0;
    if (rank >= h->count) rank = h->count - 1;
    for (unsigned i = 0; i < HIST_SIZE; i++) {
        seen += h->bucket[i];
        if (seen > rank) {
            uint64_t upper;
            if (i < HIST_STEPS) {
                upper = i;
            } else {
                unsigned shift = (i >> HIST_STEP_BITS) - 1;
                upper = (((uint64_t)(i & (HIST_STEPS - 1)) + HIST_STEPS + 1) << shift) - 1;
            }
            return (double)(upper < h->max ? upper : h->max) / 1000.0;
        }
    }
    return (double)h->max / 1000.0;
}

static inline void hist_print_json(const Histogram *h)
{
    printf("{\"count\":%llu,\"mean_us\":%.3f,\"p50_us\":%.3f,\"p90_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f,\"max_us\":%.3f}",
           (unsigned long long)h->count, h->count ? (double)h->sum / (double)h->count / 1000.0 : 0.0,
           hist_quantile_us(h, 0.5), hist_quantile_us(h, 0.9), hist_quantile_us(h, 0.99), hist_quantile_us(h, 0.999),
           (double)h->max / 1000.0);
}

/* One JSON object a line; the driver samples the server when it reads them. */
static inline void event(const char *name)
{
    printf("{\"event\":\"%s\"}\n", name);
    fflush(stdout);
}

static inline uint16_t get16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static inline uint32_t get32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static inline void put16(uint8_t *p, uint16_t v) { memcpy(p, &v, 2); }
static inline void put32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the generators patch little-endian fields in place"
#endif

static inline uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) die("%s: %s", path, strerror(errno));
    if (fseek(f, 0, SEEK_END) < 0) die("%s: %s", path, strerror(errno));
    long end = ftell(f);
    if (end < 0) die("%s: %s", path, strerror(errno));
    rewind(f);
    uint8_t *data = need(malloc((size_t)end + 1));
    if (fread(data, 1, (size_t)end, f) != (size_t)end) die("%s: short read", path);
    fclose(f);
    *size = (size_t)end;
    return data;
}

#endif
