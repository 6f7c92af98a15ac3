/*
 * The dump of a context names every task, what it waits for, and since when.
 */
#include "support/test.h"
#include <poll.h>
#include <sys/eventfd.h>

static coil_event event;
static coil_group group;
static int descriptor;
static char *text;

static int on_event(void *arg)
{
    (void)arg;
    (void)coil_timeout(coil_event_wait_op(&event), COIL_S(100));
    return 0;
}

static int on_poll(void *arg)
{
    (void)arg;
    (void)coil_poll(descriptor, POLLIN);
    return 0;
}

static int on_requests(void *arg)
{
    coil_request requests[2];

    (void)arg;
    coil_request_start(&requests[0], coil_sleep_op(COIL_FOREVER));
    coil_request_start(&requests[1], coil_event_wait_op(&event));
    (void)coil_await_any(requests, 2);
    return 0;
}

static int on_task(void *arg)
{
    coil_task_options options = {.size = sizeof(options), .name = "the child"};
    coil_task *task;

    (void)arg;
    assert_result(
        coil_task_create_with(&task, NULL, &options, on_event, NULL, 0), 0);
    return coil_task_await(&task);
}

static int on_group(void *arg)
{
    (void)arg;
    coil_group_begin(&group, COIL_GROUP_ALL);
    assert_result(coil_group_spawn(&group, on_event, NULL, 0), 0);
    return coil_group_end(&group, NULL);
}

static int on_cancelled(void *arg)
{
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, 0);
    (void)coil_yield();
    (void)coil_yield();
    {
        COIL_SHIELD(shield, COIL_FOREVER);
        (void)coil_event_wait(&event);
    }
    (void)coil_scope_end(&scope);
    return 0;
}

static int is_ready(void *arg)
{
    (void)arg;
    return 0;
}

static void spawn(const char *name, coil_task_fn *fn)
{
    coil_task_options options = {.size = sizeof(options), .name = name};

    assert_result(coil_spawn_with(NULL, &options, fn, NULL, 0), 0);
}

static void dump(void)
{
    size_t size;
    FILE *stream = open_memstream(&text, &size);

    coil_context_dump(coil_context_current(), stream);
    fclose(stream);
    fputs(text, stdout);
}

/* The line of the task contains all of this. */
static void assert_line(const char *name, const char *what, const char *more)
{
    char quoted[64], *line, *end;

    snprintf(quoted, sizeof(quoted), "  task \"%s\" (", name);
    line = strstr(text, quoted);
    ck_assert_msg(line, "no line of %s", name);
    end = strchr(line, '\n');
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    ck_assert_msg(strstr(line, what), "no \"%s\": %s", what, line);
    ck_assert_msg(strstr(line, more), "no \"%s\": %s", more, line);
    *end = '\n';
}

static int dump_task(void *arg)
{
    (void)arg;
    descriptor = eventfd(0, EFD_CLOEXEC);
    spawn("at an event", on_event);
    spawn("at a poll", on_poll);
    spawn("in a race", on_requests);
    spawn("a parent", on_task);
    spawn("a host", on_group);
    spawn("cancelled", on_cancelled);
    assert_result(coil_sleep(COIL_MS(50)), 0);
    spawn("new", is_ready);
    dump();
    ck_assert_msg(strstr(text, ": 10 tasks\n"), "%s", text);
    assert_line("at an event", "waiting for an event since 0.0",
                "limit in 99.9");
    assert_line("at a poll", "waiting for ", "poll");
    assert_line("in a race", "waiting for 2 of 2 requests since 0.0", "");
    assert_line("a parent", "waiting for the end of task \"the child\" (", "");
    assert_line("the child", "waiting for an event since", "limit in 99.9");
    assert_line("a host", "waiting for a group since", "");
    assert_line("cancelled", "waiting for an event since", "");
    assert_line("new", "ready since 0.0", "");
    assert_line("dumper", "running", "");
    free(text);
    coil_context_stop(coil_context_current());
    /* Only now, and so in a cancelled context. */
    coil_event_set(&event);
    return 0;
}

START_TEST(dump_tells_what_every_task_waits_for)
{
    coil_task_options options = {.size = sizeof(options), .name = "dumper"};
    coil_context *context = test_context();

    assert_result(coil_spawn_with(context, &options, dump_task, NULL, 0), 0);
    assert_result(coil_context_run(context), 0);
    test_context_end(context);
    close(descriptor);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dump");
    TCase *tests = tcase_create("dump");

    tcase_add_test(tests, dump_tells_what_every_task_waits_for);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
