/*
 * What the programs of this folder take on their command lines.
 *
 * Each of them says what is wrong and exits with 2 when the text makes no
 * sense: a benchmark that runs with other numbers than asked for misleads.
 */
#ifndef BENCH_ARGUMENTS_H
#define BENCH_ARGUMENTS_H

#include <netinet/in.h>

/* ADDRESS:PORT, IPv4 in numbers. Port 0 lets the kernel choose. */
struct sockaddr_in parse_endpoint(const char *text);

/* A whole number between `least` and `most`. `name` is for the message. */
unsigned long parse_count(const char *name, const char *text,
                          unsigned long least, unsigned long most);

/* A number that is zero or more. */
double parse_amount(const char *name, const char *text);

#endif
