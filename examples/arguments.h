/*
 * Command lines of the examples: `--name VALUE` and `--name` options.
 */
#ifndef EXAMPLES_ARGUMENTS_H
#define EXAMPLES_ARGUMENTS_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct argument {
    const char *name;  /* with its dashes; NULL ends a table */
    const char **text; /* where its value goes, or */
    unsigned long *number;
    unsigned long least, most;
    bool *flag; /* set if it is there; takes no value */
};

static bool argument_number(const struct argument *argument, const char *value)
{
    char *end;
    unsigned long number;

    errno = 0;
    number = strtoul(value, &end, 10);
    if (errno || *end || *value < '0' || *value > '9' ||
        number < argument->least || number > argument->most) {
        fprintf(stderr, "%s: \"%s\" is not a number from %lu to %lu\n",
                argument->name, value, argument->least, argument->most);
        return false;
    }
    *argument->number = number;
    return true;
}

static bool argument_take(const struct argument *argument, char ***rest)
{
    if (argument->flag) {
        *argument->flag = true;
        return true;
    }
    if (!(*rest)[1]) {
        fprintf(stderr, "%s: needs a value\n", argument->name);
        return false;
    }
    ++*rest;
    if (argument->number)
        return argument_number(argument, **rest);
    *argument->text = **rest;
    return true;
}

/* False after one line on stderr that says what is wrong. */
static bool arguments_parse(const struct argument *table, char **argv)
{
    for (char **rest = argv + 1; *rest; rest++) {
        const struct argument *argument = table;

        while (argument->name && strcmp(argument->name, *rest) != 0)
            argument++;
        if (!argument->name) {
            fprintf(stderr, "%s: unknown option \"%s\"\n", argv[0], *rest);
            return false;
        }
        if (!argument_take(argument, &rest))
            return false;
    }
    return true;
}

#endif
