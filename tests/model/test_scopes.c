/*
 * Thousands of tasks, each waiting under three nested scopes with random
 * limits, cancels, shields and completions, against the tables of
 * scope_model.h. The clock is ours: a director moves it tick by tick, lets
 * things happen, and waits until every wait that must end has ended.
 *
 *   COIL_MODEL_SECONDS  how long (default 3)
 *   COIL_MODEL_SEED     where the random numbers begin
 *   COIL_MODEL_THREADS  threads that cancel and post for the director
 */
#include "base/seam.h"
#include "model/crew.h"
#include "model/scope_model.h"
#include "model/slow_kernel.h"
#include "support/test.h"
#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

static const coil_time START = COIL_S(1000);

enum {
    PLAYERS = 4000,
    TICK = 1000000,
    LONGEST = 14 /* ticks of a round */
};

/* How a player waits. */
enum kind {
    SLEEP,
    READ,     /* in the kernel */
    EVENT,    /* parked */
    STARTED,  /* a started read, awaited */
    RACE,     /* any of a read and what never ends */
    CHILD,    /* a task, awaited directly, that reads */
    CHILD_OP, /* the same as an operation */
    GROUP,    /* a group of one that reads */
    KINDS
};

/* What a player tries afterwards; refused if it is cancelled by then. */
enum again { NOTHING, YIELD, YIELD_INSIDE, YIELD_CHILD, AGAINS };

/* How a scope is cancelled. */
enum way { BY_CALL, BY_POST, BY_SOURCE, WAYS };

/* To cancel a scope; it may be carried out after the round has ended. */
struct order {
    struct player *player;
    coil_scope *scope;
    unsigned long round;
    coil_stop_source *source; /* instead of a post */
};

struct player {
    int fd;
    unsigned long round;
    struct order orders[MODEL_SCOPES];
    coil_event event;
    coil_scope scopes[MODEL_SCOPES];
    coil_stop_source *sources[MODEL_SCOPES];
    /* This round, in ticks since the start; 0: never. */
    enum kind kind;
    unsigned completes, limit, deadlines[MODEL_SCOPES], cancels[MODEL_SCOPES];
    enum way ways[MODEL_SCOPES];
    enum again again;
    bool stands; /* completes while the clock stands still */
    coil_duration limit_time, sleep_time;
    struct model model;
    struct model_set set; /* once it must end */
    bool put, took;       /* its descriptor was written to, a read has it */
    bool playing;
};

static struct {
    struct player players[PLAYERS];
    unsigned tick, seconds, threads;
    unsigned long expected, waited, ended, half, results[MODEL_RESULTS];
    unsigned long sizes[MODEL_MOST + 1];
    bool over;
    int silent; /* a descriptor that is never written to */
    coil_context *context;
    unsigned long posts_wanted;
    unsigned long posts_run;
} game;

/* ----------------------------------------------------------------- helpers */

/* From now until a moment just before the clock is moved to `tick`. */
static coil_duration until(unsigned tick)
{
    coil_time then = START + (coil_time)tick * TICK;

    return then - coil__seam.time_fixed - 1 - (int)draw(TICK - 2);
}

static enum model_result result_of(ssize_t result)
{
    switch (result) {
    case -ETIME:
        return MODEL_TIMED_OUT;
    case -ECANCELED:
        return MODEL_CANCELED;
    default:
        if (result < 0)
            ck_abort_msg("a wait gave %s", coil_error_name((int)result));
        return MODEL_DONE;
    }
}

/* ------------------------------------------------------- what is waited for */

static void read_prepare(coil_request *request, struct io_uring_sqe *sqe)
{
    io_uring_prep_read(sqe, (int)request->operation.extra[0],
                       &request->operation.extra[1], 8, 0);
}

static const coil_operation_type read_type = {
    .size = sizeof(coil_operation_type),
    .name = "read",
    .flags = COIL_OPERATION_SINGLE_SHOT,
    .prepare = read_prepare,
};

static coil_operation read_op(const struct player *player, coil_duration limit)
{
    coil_operation operation = coil_operation_make(&read_type);

    operation.extra[0] = (uint64_t)player->fd;
    return coil_limit(operation, limit);
}

static int child_task(void *arg)
{
    struct player *player = arg;
    coil_duration limit =
        player->kind == CHILD_OP ? COIL_FOREVER : player->limit_time;
    ssize_t result = coil_await(read_op(player, limit));

    player->took = result >= 0;
    return result < 0 ? (int)result : 0;
}

/* The loser of a race: in the kernel, or with a timer. */
static coil_operation never_op(const struct player *player)
{
    coil_operation operation = coil_operation_make(&read_type);

    operation.extra[0] = (uint64_t)game.silent;
    return player->fd % 2 ? operation : coil_sleep_op(COIL_FOREVER);
}

static ssize_t wait_for_race(struct player *player)
{
    coil_request requests[2];
    int index;

    coil_request_start(&requests[0], never_op(player));
    coil_request_start(&requests[1], read_op(player, player->limit_time));
    index = coil_await_any(requests, 2);
    ck_assert_int_ne(index, 0);
    player->took = requests[1].result >= 0;
    return index < 0 ? index : requests[1].result;
}

static ssize_t wait_for_child(struct player *player)
{
    coil_task *task;
    int result;

    assert_result(coil_task_create(&task, child_task, player, 0), 0);
    if (player->kind == CHILD)
        result = coil_task_await(&task);
    else
        result =
            (int)coil_timeout(coil_task_await_op(&task), player->limit_time);
    ck_assert_ptr_null(task);
    return result;
}

static ssize_t wait_for_group(struct player *player)
{
    coil_group group;

    coil_group_begin(&group, COIL_GROUP_ALL);
    assert_result(coil_group_spawn(&group, child_task, player, 0), 0);
    return coil_group_end(&group, NULL);
}

static ssize_t play_wait(struct player *player)
{
    coil_request request;
    ssize_t result;

    switch (player->kind) {
    case SLEEP:
        return coil_timeout(coil_sleep_op(player->sleep_time),
                            player->limit_time);
    case EVENT:
        return coil_timeout(coil_event_wait_op(&player->event),
                            player->limit_time);
    case STARTED:
        coil_request_start(&request, read_op(player, player->limit_time));
        player->took = coil_request_await(&request) >= 0;
        return request.result;
    case RACE:
        return wait_for_race(player);
    case CHILD:
    case CHILD_OP:
        return wait_for_child(player);
    case GROUP:
        return wait_for_group(player);
    default:
        result = coil_await(read_op(player, player->limit_time));
        player->took = result >= 0;
        return result;
    }
}

/* ------------------------------------------------------------------ a round */

static void draw_scope(struct player *player, int i)
{
    player->model.scopes[i] = (struct model_scope){.shield = chance(25)};
    player->deadlines[i] = chance(50) ? 0 : game.tick + draw(12) + 1;
    player->cancels[i] = chance(60) ? 0 : game.tick + draw(12) + 1;
    player->ways[i] = (enum way)draw(WAYS);
}

static void draw_round(struct player *player)
{
    player->kind = (enum kind)draw(KINDS);
    player->model.kind = player->kind == GROUP ? MODEL_GROUP : MODEL_PLAIN;
    player->completes = game.tick + draw(LONGEST) + 1;
    player->limit = chance(50) ? 0 : game.tick + draw(12) + 1;
    player->limit_time = player->limit ? until(player->limit) : COIL_FOREVER;
    player->sleep_time = until(player->completes);
    player->again = (enum again)draw(AGAINS);
    player->stands = chance(50);
    for (int i = 0; i < MODEL_SCOPES; i++)
        draw_scope(player, i);
    coil_event_clear(&player->event);
    player->put = player->took = false;
    player->set.count = 0;
    player->round++;
    player->playing = true;
}

static void begin_scopes(struct player *player)
{
    for (int i = 0; i < MODEL_SCOPES; i++) {
        coil_duration limit =
            player->deadlines[i] ? until(player->deadlines[i]) : COIL_FOREVER;

        if (player->model.scopes[i].shield)
            coil_shield_begin(&player->scopes[i], limit);
        else
            coil_scope_begin(&player->scopes[i], limit);
        if (player->cancels[i] && player->ways[i] == BY_SOURCE) {
            assert_result(coil_stop_source_create(&player->sources[i]), 0);
            assert_result(
                coil_stop_source_bind(player->sources[i], &player->scopes[i]),
                0);
        }
    }
}

static void end_scopes(struct player *player, struct model_outcome *outcome)
{
    for (int i = MODEL_SCOPES - 1; i >= 0; i--) {
        outcome->ends[i] = result_of(coil_scope_end(&player->scopes[i]));
        coil_stop_source_unref(player->sources[i]);
        player->sources[i] = NULL;
    }
}

/* All that happens in this half of the tick happens before the scopes end.
 * Behind a shield, so that no refusal adds to what is being tested. */
static void wait_for_the_others(void)
{
    unsigned long half = game.half;

    COIL_SHIELD(shield, COIL_FOREVER);
    game.waited++;
    while (game.half == half)
        if (coil_yield() < 0)
            ck_abort_msg("a shield let something through");
}

static const char *const names[] = {"done", "timed out", "canceled"};

static void explain(const struct player *player,
                    const struct model_outcome *outcome)
{
    printf("tick %u player %td kind %d shields %d%d%d\n", game.tick,
           player - game.players, player->kind, player->model.scopes[0].shield,
           player->model.scopes[1].shield, player->model.scopes[2].shield);
    printf("completes %u limit %u deadlines %u %u %u cancels %u %u %u\n",
           player->completes, player->limit, player->deadlines[0],
           player->deadlines[1], player->deadlines[2], player->cancels[0],
           player->cancels[1], player->cancels[2]);
    printf("got       %s, ends %s %s %s\n", names[outcome->wait],
           names[outcome->ends[0]], names[outcome->ends[1]],
           names[outcome->ends[2]]);
    for (int i = 0; i < player->set.count; i++)
        printf("allowed   %s, ends %s %s %s\n",
               names[player->set.allowed[i].wait],
               names[player->set.allowed[i].ends[0]],
               names[player->set.allowed[i].ends[1]],
               names[player->set.allowed[i].ends[2]]);
    fflush(stdout);
}

static int yield_task(void *arg)
{
    (void)arg;
    return coil_yield();
}

static int yield_inside(void)
{
    coil_scope scope;
    int result;

    coil_scope_begin(&scope, COIL_FOREVER);
    result = coil_yield();
    assert_result(coil_scope_end(&scope), result);
    return result;
}

static int yield_in_child(void)
{
    coil_task *task;

    assert_result(coil_task_create(&task, yield_task, NULL, 0), 0);
    return coil_task_await(&task);
}

static void try_again(const struct player *player)
{
    bool cancelled = player->model.scopes[MODEL_SCOPES - 1].cancelled;
    int result;

    if (player->again == NOTHING)
        return;
    result = player->again == YIELD          ? coil_yield()
             : player->again == YIELD_INSIDE ? yield_inside()
                                             : yield_in_child();
    if (result != (cancelled ? -ECANCELED : 0))
        ck_abort_msg("another wait (%d) gave %s", player->again,
                     coil_error_name(result));
}

/* What came is either in the reader's hands or still there. */
static void check_nothing_is_lost(const struct player *player)
{
    uint64_t value;
    bool left = read(player->fd, &value, 8) == 8;

    if (left != (player->put && !player->took))
        ck_abort_msg("put %d, took %d, left %d (kind %d)", player->put,
                     player->took, left, player->kind);
}

static int player_task(void *arg)
{
    struct player *player = arg;
    struct model_outcome outcome = {0};

    while (!game.over) {
        draw_round(player);
        begin_scopes(player);
        outcome.wait = result_of(play_wait(player));
        wait_for_the_others();
        try_again(player);
        end_scopes(player, &outcome);
        check_nothing_is_lost(player);
        if (!model_allows(&player->set, &outcome)) {
            explain(player, &outcome);
            ck_abort_msg("an outcome that the model does not allow");
        }
        game.sizes[player->set.count]++;
        game.results[outcome.wait]++;
        game.ended++;
    }
    player->playing = false;
    return 0;
}

/* ------------------------------------------------------------- its orders */

static void cancel_posted(void *arg)
{
    const struct order *order = arg;

    if (order->round == order->player->round)
        coil_scope_cancel(order->scope);
    game.posts_run++;
}

/* In the director or in a thread. */
static void deliver(void *arg)
{
    struct order *order = arg;

    if (order->source)
        coil_stop_source_request(order->source);
    else
        assert_result(coil_context_post(game.context, cancel_posted, order), 0);
    coil_stop_source_unref(order->source);
}

/* ------------------------------------------------------------ the director */

static void cancel_scope(struct player *player, int i)
{
    struct order *order = &player->orders[i];

    if (player->ways[i] == BY_CALL) {
        coil_scope_cancel(&player->scopes[i]);
        return;
    }
    *order = (struct order){player, &player->scopes[i], player->round, NULL};
    if (player->ways[i] == BY_SOURCE)
        order->source = coil_stop_source_ref(player->sources[i]);
    else
        game.posts_wanted++;
    crew_do(deliver, order);
}

static void complete(struct player *player)
{
    uint64_t one = 1;

    if (player->kind == EVENT)
        coil_event_set(&player->event);
    else if (player->kind != SLEEP)
        player->put = write(player->fd, &one, 8) == 8;
}

/* A tick has two halves. In the first the clock stands still: what comes by a
 * post or a stop source takes some turns to arrive, and a deadline must not
 * overtake it. */
enum half { STANDING, MOVED };

static bool is_in(enum half half, const struct player *player, int i)
{
    return (player->ways[i] == BY_CALL) == (half == MOVED);
}

static unsigned events_of(const struct player *player, enum half half)
{
    bool stands = player->stands && player->kind != SLEEP;
    unsigned events = 0;

    if (player->completes == game.tick && stands == (half == STANDING))
        events |= MODEL_COMPLETES;
    if (player->limit == game.tick && half == MOVED)
        events |= MODEL_LIMIT;
    for (int i = 0; i < MODEL_SCOPES; i++) {
        if (player->cancels[i] == game.tick && is_in(half, player, i))
            events |= (unsigned)MODEL_CANCEL << i;
        if (player->deadlines[i] == game.tick && half == MOVED)
            events |= (unsigned)MODEL_DEADLINE << i;
    }
    return events;
}

/* The model first: a player may end while the rest still happens to it. */
static void direct(struct player *player, enum half half)
{
    unsigned events = events_of(player, half);
    bool early = chance(50);

    if (!player->playing || !events || player->set.count)
        return;
    player->set = model_tick(&player->model, events, player->again != NOTHING);
    game.expected += player->set.count > 0;
    if (early && (events & MODEL_COMPLETES))
        complete(player);
    for (int i = 0; i < MODEL_SCOPES; i++)
        if (events & (unsigned)MODEL_CANCEL << i)
            cancel_scope(player, i);
    if (!early && (events & MODEL_COMPLETES))
        complete(player);
}

static uint64_t turns(void)
{
    coil_stats stats;

    coil_context_stats(game.context, &stats, sizeof(stats));
    return stats.turns;
}

static int64_t real_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pass_turns(unsigned count)
{
    uint64_t until_turn = turns() + count;

    while (turns() < until_turn)
        (void)coil_yield();
}

/* Nothing that must end is left, nothing is on its way. */
static bool is_settled(void)
{
    return game.waited == game.expected && crew_is_idle() &&
           game.posts_run == game.posts_wanted;
}

static void explain_lost(void)
{
    for (unsigned i = 0; i < PLAYERS; i++) {
        const struct player *player = &game.players[i];

        if (player->playing && player->set.count) {
            printf("a wait that must end goes on:\n");
            explain(player, &player->set.allowed[0]);
            break;
        }
    }
    ck_abort_msg("expected %lu ends, saw %lu", game.expected, game.waited);
}

static void settle(void)
{
    int64_t begin = real_time();

    do {
        pass_turns(2);
        if (real_time() - begin > COIL_S(TEST_SLOW ? 40 : 8))
            explain_lost();
    } while (!is_settled());
    pass_turns(2);
    ck_assert_msg(is_settled(), "something happened that was not expected");
    game.half++;
    while (game.ended < game.expected)
        (void)coil_yield();
    /* The limits of the next rounds count from where the clock stands. */
    pass_turns(2);
}

static void play_tick(void)
{
    game.tick++;
    for (unsigned i = 0; i < PLAYERS; i++)
        direct(&game.players[i], STANDING);
    settle();
    coil__seam.time_fixed += TICK;
    for (unsigned i = 0; i < PLAYERS; i++)
        direct(&game.players[i], MOVED);
    settle();
}

static int director_task(void *arg)
{
    int64_t end = real_time() + COIL_S(game.seconds);

    (void)arg;
    pass_turns(2);
    while (real_time() < end)
        play_tick();
    game.over = true;
    for (unsigned i = 0; i < LONGEST + 1; i++)
        play_tick();
    coil__seam.time_fixed = 0;
    return 0;
}

/* ----------------------------------------------------------------- the game */

static unsigned setting(const char *name, unsigned otherwise)
{
    const char *text = getenv(name);

    return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

static void open_players(void)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    game.silent = eventfd(0, EFD_CLOEXEC);
    for (unsigned i = 0; i < PLAYERS; i++) {
        game.players[i].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        ck_assert_int_ge(game.players[i].fd, 0);
    }
}

static void play(void)
{
    game.context = test_context();
    coil__seam.time_fixed = START;
    coil__seam.completions = hold_some;
    open_players();
    crew_start(game.threads);
    for (unsigned i = 0; i < PLAYERS; i++)
        assert_result(
            coil_spawn(game.context, player_task, &game.players[i], 0), 0);
    assert_result(coil_spawn(game.context, director_task, NULL, 0), 0);
    assert_result(coil_context_run(game.context), 0);
    crew_end();
    coil__seam.completions = NULL;
    close(game.silent);
    test_context_end(game.context);
}

START_TEST(every_outcome_is_one_that_the_model_allows)
{
    unsigned seed = setting("COIL_MODEL_SEED", (unsigned)time(NULL) | 1);

    draw_seed = seed;
    game.seconds = setting("COIL_MODEL_SECONDS", 3);
    game.threads = setting("COIL_MODEL_THREADS", _i ? 4 : 0);
    printf("seed %u threads %u\n", seed, game.threads);
    fflush(stdout);
    play();
    printf("%lu rounds in %u ticks: %lu done, %lu timed out, %lu canceled; "
           "sets of 1: %lu, 2: %lu, 3: %lu\n",
           game.ended, game.tick, game.results[MODEL_DONE],
           game.results[MODEL_TIMED_OUT], game.results[MODEL_CANCELED],
           game.sizes[1], game.sizes[2], game.sizes[3]);
    for (int i = 0; i < MODEL_RESULTS; i++)
        ck_assert_uint_gt(game.results[i], 0);
    ck_assert_uint_eq(game.sizes[0], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scopes against a model");
    TCase *cases = tcase_create("model");

    tcase_set_timeout(cases, setting("COIL_MODEL_SECONDS", 3) + 60);
    tcase_add_loop_test(cases, every_outcome_is_one_that_the_model_allows, 0,
                        2);
    suite_add_tcase(suite, cases);
    return test_main(suite);
}
