/*
 * The load generator for echo servers.
 *
 * Closed loop: each connection sends, awaits the whole reply, and sends again.
 * Open loop (--rate): requests are due at fixed times whatever the server
 * does, and latency counts from the time a request was due; a server that
 * stalls cannot hide it by delaying the requests that would have shown it.
 *
 * A warm-up of the closed kind comes first. It is drained before the
 * measurement begins, and so is the measurement before it ends: with --cpu-of,
 * the server's CPU time between these two moments belongs to exactly the
 * requests that are reported, without connecting, accepting and closing.
 */
#include "arguments.h"
#include "load.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct options {
    struct sockaddr_in server;
    unsigned connections;
    unsigned size;
    unsigned long duration; /* ms */
    unsigned long warm_up;  /* ms */
    unsigned long requests; /* if not 0: so many and no warm-up */
    double rate;            /* per second; 0: closed loop */
    pid_t cpu_of;           /* 0: nobody */
};

struct result {
    double seconds;
    uint64_t total; /* with the warm-up */
    double server_cpu;
    double own_cpu; /* ns */
};

static void usage(void)
{
    fputs("usage: echo_load --connect ADDRESS:PORT [--connections N]\n"
          "                 [--size BYTES] [--rate REQUESTS_PER_SECOND]\n"
          "                 [--warm-up MS] [--duration MS | --requests N]\n"
          "                 [--cpu-of PID]\n",
          stderr);
    exit(2);
}

static void set_option(struct options *options, int option)
{
    switch (option) {
    case 'a':
        options->server = parse_endpoint(optarg);
        break;
    case 'c':
        options->connections =
            (unsigned)parse_count("connections", optarg, 1, 60000);
        break;
    case 's':
        options->size = (unsigned)parse_count("size", optarg, 1, 1 << 24);
        break;
    case 'd':
        options->duration = parse_count("duration", optarg, 1, 3600000);
        break;
    case 'w':
        options->warm_up = parse_count("warm-up", optarg, 1, 3600000);
        break;
    case 'n':
        options->requests = parse_count("requests", optarg, 1, 1ul << 40);
        break;
    case 'r':
        options->rate = parse_amount("rate", optarg);
        break;
    case 'p':
        options->cpu_of = (pid_t)parse_count("cpu-of", optarg, 1, 1 << 30);
        break;
    default:
        usage();
    }
}

static struct options parse_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"connect", required_argument, NULL, 'a'},
        {"connections", required_argument, NULL, 'c'},
        {"size", required_argument, NULL, 's'},
        {"duration", required_argument, NULL, 'd'},
        {"warm-up", required_argument, NULL, 'w'},
        {"requests", required_argument, NULL, 'n'},
        {"rate", required_argument, NULL, 'r'},
        {"cpu-of", required_argument, NULL, 'p'},
        {0},
    };
    struct options options = {
        .connections = 64, .size = 64, .duration = 1000, .warm_up = 20};
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
        set_option(&options, option);
    if (!options.server.sin_port || optind != argc)
        usage();
    return options;
}

/*
 * All threads of the process, also those that have ended meanwhile, such as
 * the kernel's workers for its ring. The clock of a thread that runs lags by
 * up to a tick: sleep first, until the server has gone idle.
 */
static double cpu_time(pid_t pid)
{
    struct timespec pause = {.tv_nsec = 3000000};
    struct timespec time;
    clockid_t clock;

    nanosleep(&pause, NULL);
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time)) {
        fprintf(stderr, "echo_load: no CPU clock of process %d\n", (int)pid);
        exit(1);
    }
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static struct result measure(struct load *load, const struct options *options)
{
    struct load_phase warm_up = {.duration = options->warm_up * 1000000u};
    struct load_phase phase = {.requests = options->requests};
    struct result result = {0};
    pid_t server = options->cpu_of ? options->cpu_of : getpid();

    if (!phase.requests) {
        phase.duration = options->duration * 1000000u;
        load_run(load, warm_up);
        result.total = load->finished;
    }
    if (options->rate > 0)
        phase.interval = 1e9 / options->rate;
    result.server_cpu = -cpu_time(server);
    result.own_cpu = -cpu_time(getpid());
    load_run(load, phase);
    result.seconds = (double)(load->now - load->began) / 1e9;
    result.total += load->finished;
    result.own_cpu += cpu_time(getpid());
    result.server_cpu += cpu_time(server);
    return result;
}

static void report(const struct load *load, const struct options *options,
                   const struct result *result)
{
    double requests = (double)load->finished;
    double seconds = result->seconds > 0 ? result->seconds : 1e-9;
    double each = requests > 0 ? 1e3 * requests : 1;

    printf("requests %ju seconds %.3f rps %.0f p50_us %.1f p99_us %.1f"
           " errors %ju total %ju load_cpu_us %.3f",
           (uintmax_t)load->finished, seconds, requests / seconds,
           (double)histogram_quantile(&load->latency, 0.50) / 1e3,
           (double)histogram_quantile(&load->latency, 0.99) / 1e3,
           (uintmax_t)load->errors, (uintmax_t)result->total,
           result->own_cpu / each);
    if (options->cpu_of)
        printf(" server_cpu_us %.4f", result->server_cpu / each);
    putchar('\n');
}

int main(int argc, char **argv)
{
    static struct load load;
    struct options options = parse_options(argc, argv);
    struct result result;

    /* A server that hangs must not hang who waits for the figures. */
    alarm((unsigned)(options.duration + options.warm_up) / 1000 + 60);
    load_open(&load, options.server, options.connections, options.size);
    result = measure(&load, &options);
    load_close(&load);
    report(&load, &options, &result);
    return load.errors ? 1 : 0;
}
