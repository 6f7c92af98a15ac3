/*
 * What every test program uses: libcheck, a context whose ring the environment
 * may shrink, and a main that runs each test in a process of its own.
 *
 *   COIL_TEST_RING=SQ,CQ  entries of every ring the tests make
 */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <check.h>
#include <coil.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sanitizers and Valgrind make everything several times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SLOW 1
#endif
#endif
#ifndef TEST_SLOW
#define TEST_SLOW 0
#endif

/* A result that must be this one; the failure prints both by name. */
#define assert_result(actual, expected)                                        \
    do {                                                                       \
        ssize_t actual_ = (ssize_t)(actual), expected_ = (ssize_t)(expected);  \
        ck_assert_msg(actual_ == expected_, "%s is %zd (%s), not %zd (%s)",    \
                      #actual, actual_, coil_error_name((int)actual_),         \
                      expected_, coil_error_name((int)expected_));             \
    } while (0)

/* The defaults of a test: the ring the environment asks for. */
coil_context_options test_options(void);

/* A context with test_options. */
coil_context *test_context(void);

/* Destroys it, having checked that nothing is in flight or alive. */
void test_context_end(coil_context *context);

/* Runs fn(arg) as the only first task of a new context, to the end; checks
 * that no descriptor was left open. Returns fn's result. */
int test_run(coil_task_fn *fn, void *arg);

/* Open descriptors of the process. */
size_t test_descriptors(void);

/* A listening acceptor on a free port of the loopback, and its endpoint. */
coil_tcp_acceptor test_listen(coil_tcp_endpoint *ret_endpoint);

/* Two connected TCP sockets; must be called in a task. */
void test_tcp_pair(coil_tcp_socket *ret_left, coil_tcp_socket *ret_right);

/* Messages of the library: counts them and keeps the latest. */
struct test_messages {
    unsigned count;
    unsigned of_kind[8];
    char last[512];
    char all[8192]; /* one line each, as far as they fit */
};
extern struct test_messages test_messages;
void test_catch_messages(void);

/* Runs every case of the suite, each test in its own process, and returns
 * what main returns. */
int test_main(Suite *suite);

#endif
