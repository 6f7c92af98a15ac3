/*
 * The echo benchmark: an echo server against the hand-written floor, or any
 * other server in its place.
 *
 * The floor against itself scatters by some per cent, and the machine drifts
 * by more. So two instances of the floor and the server under test run all the
 * time, idle ones costing nothing, and get the load in turn, in slices, in an
 * order drawn anew for each round. Ratios are taken within a round, and the
 * server's are judged beside those of the second floor.
 *
 * Two instances of one program may still differ by some per cent for as long
 * as they live, because of the pages they happen to get. More rounds do not
 * help against that, so all are started anew several times (--starts).
 *
 * All servers share one core and the load has another.
 */
#include "arguments.h"
#include "process.h"
#include "report.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    COUNTS_MAX = 16,
    SERVER_ARGUMENTS_MAX = 16,
    EXIT_OVER_BUDGET = 3,
    LINE_SIZE = 512,
};

struct options {
    unsigned connections[COUNTS_MAX];
    unsigned connection_counts;
    unsigned pairs;
    unsigned starts;     /* the pairs are spread over so many */
    unsigned long slice; /* ms */
    unsigned long size;
    double budget;
    bool enforced;  /* exit with 3 if over budget */
    bool half_rate; /* open loop at half of what the floor can do */
    char *floor;
    char *server;
    char *load;
    struct arguments {
        char *words[SERVER_ARGUMENTS_MAX];
        unsigned count;
    } floor_arguments, server_arguments;
};

struct subject_process {
    struct process process;
    char endpoint[64];
};

struct bench {
    struct options options;
    int server_core;
    int load_core;
    double rate; /* of the open loop, 0 for the closed one */
    struct subject_process subjects[SUBJECTS];
    struct results results;
};

static struct bench bench_state;

/* However this ends, no server is left over. */
static void end_servers(void)
{
    for (int subject = 0; subject < SUBJECTS; subject++) {
        struct process *process = &bench_state.subjects[subject].process;

        if (process->pid > 0) {
            kill(process->pid, SIGKILL);
            process_wait(process);
        }
    }
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench_echo: %s\n", what);
    exit(1);
}

static _Noreturn void usage(void)
{
    fputs("usage: bench_echo --floor PATH --server PATH --load PATH\n"
          "                  [--floor-arg ARGUMENT]... [--server-arg "
          "ARGUMENT]...\n"
          "                  [--half-rate]\n"
          "                  [--connections N,...] [--pairs N] [--slice MS]\n"
          "                  [--starts N] [--size BYTES] [--budget RATIO]\n",
          stderr);
    exit(2);
}

static void parse_connections(struct options *options, char *list)
{
    options->connection_counts = 0;
    for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) {
        if (options->connection_counts == COUNTS_MAX)
            usage();
        options->connections[options->connection_counts++] =
            (unsigned)parse_count("connections", word, 1, 60000);
    }
    if (!options->connection_counts)
        usage();
}

static void add_argument(struct arguments *arguments, char *argument)
{
    if (arguments->count == SERVER_ARGUMENTS_MAX)
        usage();
    arguments->words[arguments->count++] = argument;
}

static void set_option(struct options *options, int option)
{
    switch (option) {
    case 'c':
        parse_connections(options, optarg);
        break;
    case 'p':
        options->pairs = (unsigned)parse_count("pairs", optarg, 1, PAIRS_MAX);
        break;
    case 'n':
        options->starts = (unsigned)parse_count("starts", optarg, 1, PAIRS_MAX);
        break;
    case 't':
        options->slice = parse_count("slice", optarg, 1, 600000);
        break;
    case 'b':
        options->size = parse_count("size", optarg, 1, 1 << 24);
        break;
    case 'g':
        options->budget = parse_amount("budget", optarg);
        options->enforced = true;
        break;
    case 'r':
        options->half_rate = true;
        break;
    case 'f':
        options->floor = optarg;
        break;
    case 's':
        options->server = optarg;
        break;
    case 'l':
        options->load = optarg;
        break;
    case 'a':
        add_argument(&options->server_arguments, optarg);
        break;
    case 'e':
        add_argument(&options->floor_arguments, optarg);
        break;
    default:
        usage();
    }
}

static struct options parse_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"connections", required_argument, NULL, 'c'},
        {"pairs", required_argument, NULL, 'p'},
        {"starts", required_argument, NULL, 'n'},
        {"slice", required_argument, NULL, 't'},
        {"size", required_argument, NULL, 'b'},
        {"budget", required_argument, NULL, 'g'},
        {"half-rate", no_argument, NULL, 'r'},
        {"floor", required_argument, NULL, 'f'},
        {"floor-arg", required_argument, NULL, 'e'},
        {"server", required_argument, NULL, 's'},
        {"server-arg", required_argument, NULL, 'a'},
        {"load", required_argument, NULL, 'l'},
        {0},
    };
    struct options options = {
        .connections = {64, 1000},
        .connection_counts = 2,
        .pairs = 20,
        .starts = 5,
        .slice = 200,
        .size = 64,
        .budget = 0.02,
    };
    int option;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
        set_option(&options, option);
    if (optind != argc || !options.floor || !options.server || !options.load)
        usage();
    return options;
}

static void start_subject(struct bench *bench, enum subject subject)
{
    const struct options *options = &bench->options;
    struct subject_process *started = &bench->subjects[subject];
    const struct arguments *more = subject == SERVER
                                       ? &options->server_arguments
                                       : &options->floor_arguments;
    char *arguments[5 + SERVER_ARGUMENTS_MAX] = {
        subject == SERVER ? options->server : options->floor, "--listen",
        "127.0.0.1:0", "--quiet"};
    char line[LINE_SIZE];

    memcpy(arguments + 4, more->words, more->count * sizeof(*arguments));
    if (!process_start(&started->process, arguments, bench->server_core))
        fail("cannot start a server");
    do {
        if (!process_read_line(&started->process, line, sizeof(line)))
            fail("a server ended before it listened");
    } while (sscanf(line, "listening on %63s", started->endpoint) != 1);
}

static double value_of(const char *line, const char *name)
{
    double value;

    if (!find_value(line, name, &value)) {
        fprintf(stderr, "bench_echo: no \"%s\" in: %s\n", name, line);
        exit(1);
    }
    return value;
}

static void add_counts(struct counts *counts, const char *line)
{
    counts->sqes += value_of(line, "sqes");
    counts->cqes += value_of(line, "cqes");
    counts->enters += value_of(line, "enters");
}

static void stop_subject(struct bench *bench, enum subject subject)
{
    struct process *process = &bench->subjects[subject].process;
    char line[LINE_SIZE];

    kill(process->pid, SIGTERM);
    while (process_read_line(process, line, sizeof(line))) {
        if (strncmp(line, "connections ", 12) == 0)
            add_counts(&bench->results.counts[subject], line);
    }
    if (!process_wait(process))
        fail("a server failed");
}

/* One run of the load; its line of figures. */
static void run_load(const struct bench *bench,
                     const struct subject_process *subject,
                     char line[LINE_SIZE])
{
    char numbers[5][32];
    char *arguments[] = {bench->options.load,
                         "--connect",
                         (char *)subject->endpoint,
                         "--connections",
                         numbers[0],
                         "--size",
                         numbers[1],
                         "--duration",
                         numbers[2],
                         "--rate",
                         numbers[3],
                         "--cpu-of",
                         numbers[4],
                         NULL};
    struct process load;

    snprintf(numbers[0], sizeof(*numbers), "%u", bench->results.connections);
    snprintf(numbers[1], sizeof(*numbers), "%lu", bench->options.size);
    snprintf(numbers[2], sizeof(*numbers), "%lu", bench->options.slice);
    snprintf(numbers[3], sizeof(*numbers), "%.0f", bench->rate);
    snprintf(numbers[4], sizeof(*numbers), "%d", (int)subject->process.pid);
    if (!process_start(&load, arguments, bench->load_core))
        fail("cannot start the load");
    if (!process_read_line(&load, line, LINE_SIZE) || !process_wait(&load))
        fail("the load failed");
}

static void run_slice(struct bench *bench, enum subject subject, unsigned round)
{
    struct subject_process *server = &bench->subjects[subject];
    double(*samples)[PAIRS_MAX] = bench->results.samples[subject];
    double cpu = -process_cpu(&server->process);
    char line[LINE_SIZE];

    run_load(bench, server, line);
    /* The ends of its connections belong to this server, not to the next. */
    process_settle(&server->process);
    cpu += process_cpu(&server->process);
    bench->results.counts[subject].echoes += value_of(line, "total");
    samples[CPU][round] = value_of(line, "server_cpu_us");
    samples[WHOLE_CPU][round] = cpu / 1e3 / value_of(line, "total");
    samples[RATE][round] = value_of(line, "rps");
    samples[P50][round] = value_of(line, "p50_us");
    samples[P99][round] = value_of(line, "p99_us");
    samples[BUSY][round] = samples[CPU][round] * samples[RATE][round] / 1e6;
    samples[LOAD_CPU][round] = value_of(line, "load_cpu_us");
}

static void run_round(struct bench *bench, unsigned round)
{
    enum subject order[SUBJECTS] = {FLOOR_A, FLOOR_B, SERVER};

    for (int i = SUBJECTS - 1; i > 0; i--) {
        int other = rand() % (i + 1);
        enum subject kept = order[i];

        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < SUBJECTS; i++)
        run_slice(bench, order[i], round);
}

/* ns of CPU time that went to others than this benchmark, since the boot. */
static double cpu_of_others(const struct bench *bench)
{
    double cpu = machine_cpu() - ended_children_cpu();

    for (int subject = 0; subject < SUBJECTS; subject++)
        cpu -= process_cpu(&bench->subjects[subject].process);
    return cpu;
}

static void start_all(struct bench *bench)
{
    for (enum subject subject = 0; subject < SUBJECTS; subject++)
        start_subject(bench, subject);
}

static void stop_all(struct bench *bench)
{
    for (enum subject subject = 0; subject < SUBJECTS; subject++)
        stop_subject(bench, subject);
}

/* All the rounds of one start, and what others used of the machine. */
static void run_rounds(struct bench *bench, unsigned first, unsigned end)
{
    struct results *results = &bench->results;

    start_all(bench);
    /* A round that is measured again: pages touched, caches filled. */
    run_round(bench, first);
    if (bench->options.half_rate && bench->rate <= 0)
        bench->rate = results->samples[FLOOR_A][RATE][first] / 2;
    results->others -= cpu_of_others(bench) / 1e9;
    results->seconds -= clock_seconds();
    for (unsigned round = first; round < end; round++)
        run_round(bench, round);
    results->seconds += clock_seconds();
    results->others += cpu_of_others(bench) / 1e9;
    stop_all(bench);
}

static bool run_connections(struct bench *bench, unsigned connections)
{
    const struct options *options = &bench->options;
    unsigned first = 0;

    memset(&bench->results, 0, sizeof(bench->results));
    bench->results.connections = connections;
    bench->results.pairs = options->pairs;
    bench->rate = 0;
    for (unsigned start = 1; start <= options->starts; start++) {
        unsigned end = options->pairs * start / options->starts;

        if (end > first)
            run_rounds(bench, first, end);
        first = end;
    }
    printf("\nconnections %u size %lu pairs %u slice %lu ms", connections,
           options->size, options->pairs, options->slice);
    if (options->half_rate)
        printf(" open loop at %.0f/s", bench->rate);
    putchar('\n');
    report_results(&bench->results);
    return report_verdict(&bench->results, options->budget, options->half_rate);
}

int main(int argc, char **argv)
{
    struct bench *bench = &bench_state;
    bool met = true;

    bench->options = parse_options(argc, argv);
    atexit(end_servers);
    srand((unsigned)time(NULL));
    find_cores(&bench->server_core, &bench->load_core);
    if (bench->server_core < 0)
        puts("only one core: nothing is pinned, and times mean little");
    for (unsigned i = 0; i < bench->options.connection_counts; i++) {
        met &= run_connections(bench, bench->options.connections[i]);
        fflush(stdout);
    }
    return met || !bench->options.enforced ? 0 : EXIT_OVER_BUDGET;
}
