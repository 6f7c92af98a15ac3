/*
 * The client side of an echo: many connections, each with at most one request
 * under way, on one ring.
 *
 * It has to be cheaper than any server, or the server would not be what is
 * measured. So it takes what a server with ordinary connections would not:
 * registered descriptors, one multishot receive per connection into shared
 * buffers, and sends that post no completion when they succeed.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "histogram.h"

#include <liburing.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load_connection {
    int fd;
    bool busy;           /* a request is under way */
    bool failed;         /* counted as an error once, not used again */
    unsigned waiting;    /* open loop: requests due that wait for their turn */
    unsigned received;   /* bytes of the present reply */
    unsigned pattern;    /* where in the pattern the present request begins */
    uint64_t requests;   /* started in this phase */
    uint64_t started_at; /* ns; open loop: when it should have been started */
};

/* How long a phase lasts; exactly one of `duration` and `requests` is set. */
struct load_phase {
    uint64_t duration; /* ns */
    uint64_t requests; /* start exactly so many, over all connections */
    double interval;   /* ns between two requests; 0: closed loop */
};

struct load {
    struct io_uring ring;
    struct load_connection *connections;
    unsigned count;
    unsigned size; /* bytes of a request and of its reply */
    bool spin;     /* there is a core to spare for watching the clock */

    char *pattern;
    char *buffers;
    struct io_uring_buf_ring *buffer_ring;
    size_t buffer_size;
    unsigned returned; /* buffers to be given back at the end of the turn */

    struct load_phase phase;
    uint64_t now; /* ns, one reading per turn */
    uint64_t began;
    uint64_t started;
    uint64_t finished;
    unsigned in_flight;
    unsigned alive;

    uint64_t errors;
    struct histogram latency; /* ns, of this phase */
};

uint64_t load_clock(void);

/* Connects all. A failure is a message and exit(1), here and below. */
void load_open(struct load *load, struct sockaddr_in server, unsigned count,
               unsigned size);

/*
 * One phase: every connection makes at least one round trip if the phase is
 * bounded by time. Returns when nothing is under way any more, so that what
 * server and client spend between two phases belongs to neither.
 * Results: began, now (its end), finished, latency; errors add up.
 */
void load_run(struct load *load, struct load_phase phase);

/* Says goodbye on every connection. */
void load_close(struct load *load);

#endif
