/*
 * Timer queues compared: heaps, timer wheels and the library's own.
 *
 *   bench_timers [--most N] [--repetitions N]
 *
 *   touch       writes to the timer and keeps no queue: what the driver and
 *               the memory cost, which no queue can get below
 *   heap        a pairing heap
 *   heap+fifo   a list for each of a few limits in front of the heap: equal
 *               limits are due in the order in which they were armed
 *   heap+lazy   a cancelled timer, or one that moves to a later time, keeps its
 *               place in the heap until it comes up
 *   wheel       the wheel of timer_wheel.h
 *   wheel+lazy  the same with the idea of heap+lazy
 *   wheel+heap  the library's queue: a wheel, and a heap for the present tick
 *   wheel+heap+lazy  the same as the library's tasks use it
 *
 * The lazy ones need timers that outlive being armed, as a task's own does.
 *
 * Each structure has timers of its own and keeps them for all repetitions of a
 * case, which take turns. Time is simulated: a step is 100 ns, every 32 steps
 * are a turn of the loop, which expires and asks for the next deadline. After
 * the repetitions everything is drained, and anything lost, early or late is
 * an error.
 */
#include "arguments.h"
#include "timer_queues.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The driver */

static void arm(struct subject *subject, struct timer *timer)
{
    int64_t limit = CONSTANT;

    if (subject->uniform)
        limit = SECOND + (int64_t)draw_below(subject, 59 * SECOND);
    timer->deadline = subject->now + limit;
    timer->armed = true;
    subject->structure->arm(subject, timer, limit);
    subject->now += STEP;
}

static void cancel(struct subject *subject, struct timer *timer)
{
    timer->armed = false;
    subject->structure->cancel(subject, timer);
}

static struct timer *expire(struct subject *subject)
{
    struct timer *timer = subject->structure->expire(subject);

    if (!timer)
        return NULL;
    if (!timer->armed)
        fail(subject, "a cancelled timer fired");
    if (timer->deadline > subject->now)
        fail(subject, "a timer fired early");
    timer->armed = false;
    return timer;
}

/* What the loop does once in a while. */
static void turn(struct subject *subject)
{
    struct timer *timer;

    if (!subject->structure->expire)
        return;
    while ((timer = expire(subject)))
        arm(subject, timer);
    if (subject->structure->next(subject) == WHEEL_NEVER)
        fail(subject, "all timers are gone");
}

static void run_fresh(struct subject *subject, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        struct timer *timer = timer_at(subject, subject->count + i % SPARES);

        arm(subject, timer);
        cancel(subject, timer);
        if (i % TURN == 0)
            turn(subject);
    }
}

static void run_round_robin(struct subject *subject, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        struct timer *timer = timer_at(subject, subject->oldest);

        if (++subject->oldest == subject->count)
            subject->oldest = 0;
        cancel(subject, timer);
        arm(subject, timer);
        if (i % TURN == 0)
            turn(subject);
    }
}

static void rearm_random(struct subject *subject)
{
    struct timer *timer =
        timer_at(subject, draw_below(subject, subject->count));

    cancel(subject, timer);
    arm(subject, timer);
}

static void run_random(struct subject *subject, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        rearm_random(subject);
        if (i % TURN == 0)
            turn(subject);
    }
}

/* Lets time pass until one expires. */
static struct timer *await(struct subject *subject)
{
    struct timer *timer;

    while (!(timer = expire(subject))) {
        int64_t next = subject->structure->next(subject);

        if (next == WHEEL_NEVER)
            fail(subject, "a timer is lost");
        if (next > subject->now)
            subject->now = next;
    }
    return timer;
}

static void run_most_cancelled(struct subject *subject, size_t steps)
{
    for (size_t i = 0; i < steps; i++) {
        if (i % 20 == 0)
            arm(subject, await(subject));
        else
            rearm_random(subject);
    }
}

static const struct bench_case cases[] = {
    {"fresh", run_fresh, .uniform_too = true, .scattered = true},
    {"round-robin", run_round_robin, .uniform_too = false},
    {"random-victim", run_random, .uniform_too = true, .scattered = true},
    {"most-cancelled", run_most_cancelled, .uniform_too = true,
     .scattered = true, .expires = true},
    {"first-expiry", run_most_cancelled, .uniform_too = true, .scattered = true,
     .expires = true, .once = true},
};

static void set_up(struct subject *subject, const struct bench_case *item,
                   bool uniform)
{
    /* A prime larger than any count, so the indices are all different. */
    size_t factor = item->scattered ? 1000003 : 1;

    subject->now = START;
    subject->random = 88172645463325252;
    subject->uniform = uniform;
    subject->oldest = 0;
    subject->structure->init(subject);
    for (size_t i = 0; i < SPARES; i++)
        *timer_at(subject, subject->count + i) = (struct timer){0};
    for (size_t i = 0; i < subject->count; i++) {
        struct timer *timer = timer_at(subject, i * factor % subject->count);

        *timer = (struct timer){0};
        arm(subject, timer);
    }
}

/* Everything must come, none early, and none later than the structure admits.
 * An exact structure may not be late at all, so this also tells that the order
 * is right. What was due before may be as late as a turn is long, or more where
 * the case takes one out only now and then. */
static void drain(struct subject *subject, const struct bench_case *item)
{
    int64_t began = subject->now;

    for (size_t i = 0; i < subject->count; i++) {
        const struct timer *timer = await(subject);
        int64_t due = timer->deadline < began ? began : timer->deadline;

        if (subject->now - due > subject->structure->lateness)
            fail(subject, "a timer fired late");
        if (!item->expires &&
            began - timer->deadline >
                subject->structure->lateness + 2 * TURN * STEP)
            fail(subject, "a timer was forgotten for long");
    }
    if (subject->structure->expire(subject) ||
        (subject->now = WHEEL_NEVER, subject->structure->expire(subject)))
        fail(subject, "more timers fired than were armed");
}

static double clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double measure(struct subject *subject, const struct bench_case *item,
                      size_t steps)
{
    double began = clock_ns();

    item->run(subject, steps);
    return (clock_ns() - began) / (double)steps;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double budget_of(const char *name, const struct subject *subject)
{
    if (strcmp(name, "fresh") == 0)
        return 10;
    if (subject->count < 1000000)
        return 0;
    if (strcmp(name, "round-robin") == 0)
        return 40;
    return strcmp(name, "random-victim") == 0 && subject->colours ? 200 : 0;
}

static void print(struct subject *subject, const struct bench_case *item,
                  const char *layout, size_t repetitions)
{
    double budget = budget_of(item->name, subject), median;

    qsort(subject->results, repetitions, sizeof(double), compare);
    median = subject->results[repetitions / 2];
    printf("timers structure %s armed %zu limits %s case %s layout %s "
           "ns_per_step %.1f",
           subject->structure->name, subject->count,
           subject->uniform ? "uniform" : "constant", item->name, layout,
           median);
    if (budget > 0)
        printf(" budget %.0f %s", budget, median <= budget ? "met" : "missed");
    putchar('\n');
    fflush(stdout);
}

static bool takes_part(const struct subject *subject,
                       const struct bench_case *item)
{
    return subject->structure->expire || !item->expires;
}

static void run_case(const struct bench_case *item, bool uniform,
                     const char *layout, size_t repetitions)
{
    size_t steps = subjects->count / 2;

    if (steps < STEPS_LEAST)
        steps = STEPS_LEAST;
    if (item->once)
        steps = 1;
    /* One more, first, to warm up, unless it begins anew each time. */
    for (size_t round = item->once; round <= repetitions; round++)
        for (int i = 0; i < STRUCTURES; i++) {
            if (!takes_part(&subjects[i], item))
                continue;
            if (item->once || round == 0)
                set_up(&subjects[i], item, uniform);
            subjects[i].results[round ? round - 1 : 0] =
                measure(&subjects[i], item, steps);
        }
    for (int i = 0; i < STRUCTURES; i++) {
        if (!takes_part(&subjects[i], item))
            continue;
        /* The other cases have shown what there is to see. */
        if (subjects[i].structure->expire && !item->once)
            drain(&subjects[i], item);
        print(&subjects[i], item, layout, repetitions);
    }
}

static void lay_out(struct layout *layout, size_t count)
{
    size_t parts = (STRUCTURES + layout->shares - 1) / layout->shares;

    layout->part = (count + SPARES) * layout->stride;
    layout->memory = mmap(NULL, parts * layout->part, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (layout->memory == MAP_FAILED)
        fail(NULL, "cannot be mapped");
    for (size_t i = 0; i < STRUCTURES; i++) {
        struct subject *subject = &subjects[i];

        subject->structure = &structures[i];
        subject->stride = layout->stride;
        subject->colours = layout->colours;
        subject->count = count;
        subject->timers = layout->memory + i / layout->shares * layout->part +
                          i % layout->shares * layout->share;
    }
}

/* In the stacks layout, a page for each timer of up to four structures. Page
 * tables and everybody else get the rest. */
static bool fits(size_t count)
{
    size_t parts = (STRUCTURES + SHARES - 1) / SHARES;
    size_t available =
        (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

    return parts * count * PAGE < available / 10 * 8;
}

static void run_layout(struct layout *layout, size_t count, size_t repetitions)
{
    size_t parts = (STRUCTURES + layout->shares - 1) / layout->shares;

    lay_out(layout, count);
    printf("# layout %s armed %zu stride %zu colours %zu\n", layout->name,
           count, layout->stride, layout->colours + 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        run_case(&cases[i], false, layout->name, repetitions);
        if (cases[i].uniform_too)
            run_case(&cases[i], true, layout->name, repetitions);
    }
    munmap(layout->memory, parts * layout->part);
}

static void run_count(size_t count, size_t repetitions)
{
    struct layout dense = {
        .name = "dense", .stride = sizeof(struct timer), .shares = 1};
    struct layout stacks = {.name = "stacks",
                            .stride = count > 100000 ? PAGE : STACK,
                            .colours = COLOURS - 1,
                            .share = SHARE,
                            .shares = SHARES};

    run_layout(&dense, count, repetitions);
    if (fits(count))
        run_layout(&stacks, count, repetitions);
    else
        printf("# layout stacks armed %zu left out: too little memory\n",
               count);
}

int main(int argc, char **argv)
{
    static const size_t counts[] = {1000, 100000, 1000000};
    unsigned long most = 1000000, repetitions = 5;

    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--most") == 0) {
            most = parse_count("most", value, 1000, 1000000);
        } else if (strcmp(argv[i], "--repetitions") == 0) {
            repetitions =
                parse_count("repetitions", value, 1, REPETITIONS_MOST);
        } else {
            fputs("usage: bench_timers [--most N] [--repetitions N]\n", stderr);
            return 2;
        }
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
        if (counts[i] <= most)
            run_count(counts[i], repetitions);
    return 0;
}
