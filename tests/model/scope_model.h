/*
 * What cancellation may do to one wait under three nested scopes, as tables.
 * The contract says it in words; nothing here looks at the library.
 *
 * Time passes in ticks. All that happens in one tick is one set of events, and
 * the model says whether the wait ends then, with which results, and what the
 * ends of the three scopes must say.
 */
#ifndef TESTS_MODEL_SCOPE_MODEL_H
#define TESTS_MODEL_SCOPE_MODEL_H

#include <stdbool.h>
#include <string.h>

enum { MODEL_SCOPES = 3, MODEL_MOST = 3 };

/* What may happen to a wait and its scopes in a tick; bits. */
enum {
    MODEL_COMPLETES = 1, /* what is waited for comes */
    MODEL_LIMIT = 2,     /* the wait's own limit passes */
    MODEL_CANCEL = 4,    /* << i: scope i is cancelled by a call */
    MODEL_DEADLINE = 32  /* << i: the limit of scope i passes */
};

enum model_result {
    MODEL_DONE,
    MODEL_TIMED_OUT,
    MODEL_CANCELED,
    MODEL_RESULTS
};

/* How the result of a wait is told. */
enum model_kind {
    MODEL_PLAIN,
    MODEL_GROUP /* by group_end, which tells of a cancel by itself */
};

struct model_scope {
    bool shield;    /* hides what is outside, until its limit */
    bool own;       /* it was cancelled itself or its limit passed */
    bool timed_out; /* the limit came first */
    bool cancelled; /* it, or one around it that it does not hide */
};

struct model {
    struct model_scope scopes[MODEL_SCOPES]; /* from the outside in */
    enum model_kind kind;
};

struct model_outcome {
    enum model_result wait;
    enum model_result ends[MODEL_SCOPES];
};

struct model_set {
    int count; /* 0: the wait goes on */
    struct model_outcome allowed[MODEL_MOST];
};

/* Results of a wait: completion, own limit, cancellation in the same tick. */
static const struct {
    int count;
    enum model_result results[2];
} model_waits[8] = {
    /* nothing       */ {0, {0}},
    /* C             */ {1, {MODEL_DONE}},
    /*   L           */ {1, {MODEL_TIMED_OUT}},
    /* C L           */ {2, {MODEL_DONE, MODEL_TIMED_OUT}},
    /*     cancelled */ {1, {MODEL_CANCELED}},
    /* C   cancelled */ {2, {MODEL_DONE, MODEL_CANCELED}},
    /*   L cancelled */ {1, {MODEL_CANCELED}},
    /* C L cancelled */ {2, {MODEL_DONE, MODEL_CANCELED}},
};

/* What the end of a scope says: a wait was refused or interrupted in it, the
 * scope around it is cancelled, its own limit was the cause. */
static const enum model_result model_ends[8] = {
    /* nothing                   */ MODEL_DONE,
    /* refused                   */ MODEL_CANCELED,
    /*         around            */ MODEL_DONE,
    /* refused around            */ MODEL_CANCELED,
    /*                timed out  */ MODEL_DONE,
    /* refused        timed out  */ MODEL_TIMED_OUT,
    /*         around timed out  */ MODEL_DONE,
    /* refused around timed out  */ MODEL_CANCELED,
};

/* A call cancels before a deadline of the same tick does; the first cause
 * counts. */
static inline void model_apply(struct model *model, unsigned events)
{
    bool around = false;

    for (int i = 0; i < MODEL_SCOPES; i++) {
        struct model_scope *scope = &model->scopes[i];

        if (events & (unsigned)MODEL_CANCEL << i)
            scope->own = true;
        if (events & (unsigned)MODEL_DEADLINE << i) {
            if (scope->shield)
                scope->shield = false;
            else if (!scope->cancelled && !scope->own)
                scope->own = scope->timed_out = true;
        }
        /* A level: never taken back. */
        scope->cancelled |= scope->own || (around && !scope->shield);
        around = scope->cancelled;
    }
}

/* The ends, given whether the innermost scope saw a wait refused. */
static inline void model_end(const struct model *model, bool refused,
                             struct model_outcome *outcome)
{
    for (int i = MODEL_SCOPES - 1; i >= 0; i--) {
        bool around = i > 0 && model->scopes[i - 1].cancelled;
        unsigned index = refused | (unsigned)around << 1 |
                         (unsigned)model->scopes[i].timed_out << 2;

        outcome->ends[i] = model_ends[index];
        refused = refused && around;
    }
}

static inline bool model_allows(const struct model_set *set,
                                const struct model_outcome *outcome)
{
    for (int i = 0; i < set->count; i++)
        if (memcmp(&set->allowed[i], outcome, sizeof(*outcome)) == 0)
            return true;
    return false;
}

static inline void model_allow(struct model_set *set,
                               const struct model_outcome *outcome)
{
    if (!model_allows(set, outcome))
        set->allowed[set->count++] = *outcome;
}

/* One tick. `refused_again`: the task tries another wait after this one. */
static inline struct model_set model_tick(struct model *model, unsigned events,
                                          bool refused_again)
{
    struct model_set set = {0};
    unsigned index = events & (MODEL_COMPLETES | MODEL_LIMIT);
    bool cancelled;

    model_apply(model, events);
    cancelled = model->scopes[MODEL_SCOPES - 1].cancelled;
    if (cancelled)
        index |= 4;
    for (int i = 0; i < model_waits[index].count; i++) {
        struct model_outcome outcome = {.wait = model_waits[index].results[i]};

        model_end(model,
                  outcome.wait == MODEL_CANCELED ||
                      (refused_again && cancelled),
                  &outcome);
        model_allow(&set, &outcome);
        if (model->kind == MODEL_GROUP && cancelled &&
            outcome.wait == MODEL_DONE) {
            /* The child was in time; was the end of the group, too? */
            outcome.wait = MODEL_CANCELED;
            model_allow(&set, &outcome);
        }
    }
    return set;
}

#endif
