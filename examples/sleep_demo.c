/*
 * A ticker, and a wait for Ctrl-C that gives up after five seconds.
 */
#include <coil.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>

static int ticker(void *arg)
{
    coil_time next = coil_now();
    int ticks = 0;

    (void)arg;
    while (coil_sleep_until(next += COIL_S(1)) == 0) {
        printf("tick %d\n", ++ticks);
        fflush(stdout);
    }
    printf("the ticker was cancelled after %d ticks\n", ticks);
    return 0;
}

static int watcher(void *arg)
{
    const int numbers[] = {SIGINT, SIGTERM};
    coil_signal_set signals;
    int result = coil_signal_set_open(&signals, numbers, 2);

    (void)arg;
    if (result >= 0) {
        result =
            (int)coil_timeout(coil_signal_set_wait_op(&signals), COIL_S(5));
        printf(result == -ETIME ? "no signal in 5 s\n" : "got signal %d\n",
               result);
        coil_signal_set_close(&signals);
    }
    coil_context_stop(coil_context_current());
    return result == -ETIME ? 0 : result;
}

int main(void)
{
    coil_context *context;
    coil_error error;
    int result = coil_context_create(&context, NULL, &error);

    if (result < 0) {
        fprintf(stderr, "%s\n", error.text);
        return 2;
    }
    result = coil_spawn(context, watcher, NULL, 0);
    if (result >= 0)
        result = coil_spawn(context, ticker, NULL, 0);
    if (result < 0)
        coil_context_stop(context);
    if (result >= 0)
        result = coil_context_run(context);
    coil_context_destroy(context);
    return result < 0 ? 2 : 0;
}
