#include "arguments.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void refuse(const char *name, const char *text)
{
    fprintf(stderr, "%s: cannot use \"%s\"\n", name, text);
    exit(2);
}

struct sockaddr_in parse_endpoint(const char *text)
{
    struct sockaddr_in endpoint = {.sin_family = AF_INET};
    char address[INET_ADDRSTRLEN];
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : sizeof(address);

    if (length >= sizeof(address))
        refuse("endpoint", text);
    memcpy(address, text, length);
    address[length] = '\0';
    if (inet_pton(AF_INET, address, &endpoint.sin_addr) != 1)
        refuse("endpoint", text);
    endpoint.sin_port =
        htons((in_port_t)parse_count("port", colon + 1, 0, 65535));
    return endpoint;
}

unsigned long parse_count(const char *name, const char *text,
                          unsigned long least, unsigned long most)
{
    char *end;
    unsigned long count;

    /* strtoul would take "-1" for a very large number. */
    if (*text < '0' || *text > '9')
        refuse(name, text);
    errno = 0;
    count = strtoul(text, &end, 10);
    if (errno || *end || count < least || count > most)
        refuse(name, text);
    return count;
}

double parse_amount(const char *name, const char *text)
{
    char *end;
    double amount = strtod(text, &end);

    if (end == text || *end || !isfinite(amount) || amount < 0)
        refuse(name, text);
    return amount;
}
