#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const subject_names[SUBJECTS] = {"floor A", "floor B",
                                                    "server"};

static const struct {
    const char *name;
    int decimals;
    bool compared;
} metrics[METRICS] = {
    [CPU] = {"server CPU us/echo", 3, true},
    [WHOLE_CPU] = {" with connect and close", 3, true},
    [RATE] = {"echoes/s", 0, true},
    [P50] = {"p50 us", 1, true},
    [P99] = {"p99 us", 1, true},
    [BUSY] = {"server's core busy", 2, false},
    [LOAD_CPU] = {"load CPU us/echo", 3, false},
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Between two samples in proportion, so that few samples do not jump. */
static double quantile(const double *samples, unsigned count, double fraction)
{
    double sorted[PAIRS_MAX];
    double position = fraction * (count - 1);
    unsigned below = (unsigned)position;
    unsigned above = below + 1 < count ? below + 1 : below;

    memcpy(sorted, samples, count * sizeof(*samples));
    qsort(sorted, count, sizeof(*sorted), compare);
    return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
}

/* The quantile of the ratios within each round, not the ratio of quantiles:
 * the machine's slow drift is the same in both of a pair. */
static double ratio(const struct results *results, enum subject subject,
                    enum metric metric, double fraction)
{
    double ratios[PAIRS_MAX];

    for (unsigned i = 0; i < results->pairs; i++)
        ratios[i] = results->samples[subject][metric][i] /
                    results->samples[FLOOR_A][metric][i];
    return quantile(ratios, results->pairs, fraction);
}

static void report_medians(const struct results *results)
{
    printf("%-26s", "median");
    for (int subject = 0; subject < SUBJECTS; subject++)
        printf(" %11s", subject_names[subject]);
    putchar('\n');
    for (enum metric metric = 0; metric < METRICS; metric++) {
        printf("%-26s", metrics[metric].name);
        for (int subject = 0; subject < SUBJECTS; subject++)
            printf(" %11.*f", metrics[metric].decimals,
                   quantile(results->samples[subject][metric], results->pairs,
                            0.5));
        putchar('\n');
    }
}

static void report_ratios(const struct results *results)
{
    printf("%-26s %23s %23s\n", "ratio: median (p10..p90)", "floor B / floor A",
           "server / floor A");
    for (enum metric metric = 0; metric < METRICS; metric++) {
        if (!metrics[metric].compared)
            continue;
        printf("%-26s", metrics[metric].name);
        for (enum subject subject = FLOOR_B; subject < SUBJECTS; subject++)
            printf("   %.4f (%.3f..%.3f)", ratio(results, subject, metric, 0.5),
                   ratio(results, subject, metric, 0.1),
                   ratio(results, subject, metric, 0.9));
        putchar('\n');
    }
}

/*
 * A neighbour can only make an echo dearer, so the cheapest quarter of the
 * slices says most about the servers when the machine is busy.
 */
static void report_quiet(const struct results *results)
{
    double floor =
        quantile(results->samples[FLOOR_A][CPU], results->pairs, 0.25);

    printf("%-26s", "CPU, ratio of quartiles 1");
    for (enum subject subject = FLOOR_B; subject < SUBJECTS; subject++)
        printf("   %.4f               ",
               quantile(results->samples[subject][CPU], results->pairs, 0.25) /
                   floor);
    printf("\n%-26s   %.2f cores\n", "used by others",
           results->others / results->seconds);
}

static void report_counts(const struct results *results)
{
    printf("%-26s %11s %11s %11s %11s\n", "per echo, set-up included", "SQEs",
           "CQEs", "enters", "echoes");
    for (int subject = 0; subject < SUBJECTS; subject++) {
        const struct counts *counts = &results->counts[subject];
        double echoes = counts->echoes > 0 ? counts->echoes : 1;

        printf("%-26s %11.4f %11.4f %11.4f %11.0f\n", subject_names[subject],
               counts->sqes / echoes, counts->cqes / echoes,
               counts->enters / echoes, counts->echoes);
    }
}

void report_results(const struct results *results)
{
    report_medians(results);
    report_ratios(results);
    report_quiet(results);
    report_counts(results);
}

/* Beside each figure the same one of the floor itself: that much is chance. */
static bool judge(const char *what, double value, double floor, bool at_most,
                  double budget)
{
    bool met = at_most ? value <= budget : value >= budget;

    printf("%-26s %.4f (%s %.3f; floor B / floor A %.4f): %s\n", what, value,
           at_most ? "at most" : "at least", budget, floor,
           met ? "met" : "not met");
    return met;
}

static void judge_ratio(const struct results *results, const char *what,
                        enum metric metric, bool at_most, double budget)
{
    judge(what, ratio(results, SERVER, metric, 0.5),
          ratio(results, FLOOR_B, metric, 0.5), at_most, budget);
}

bool report_verdict(const struct results *results, double cpu_budget,
                    bool open_loop)
{
    double floor = ratio(results, FLOOR_B, CPU, 0.5);
    double above = ratio(results, SERVER, CPU, 0.5) - floor;
    bool met =
        judge("verdict: CPU above floor", above, floor, true, cpu_budget);

    /* In the open loop the rate is given and says nothing. */
    if (open_loop)
        judge_ratio(results, "verdict: p50", P50, true, 1.05);
    else
        judge_ratio(results, "verdict: echoes/s", RATE, false, 0.98);
    judge_ratio(results, "verdict: p99", P99, true, 1.1);
    return met;
}
