/*
 * The cases of a switch as a program that needs no library at all.
 */
#include "switch_cases.h"

int main(void)
{
    int failed = 0;

    for (int i = 0; i < SWITCH_CASES; i++) {
        const char *wrong = switch_cases[i].run();

        printf("%s: %s\n", switch_cases[i].name, wrong ? wrong : "passed");
        failed += wrong != NULL;
    }
    printf("%d passed, %d failed\n", SWITCH_CASES - failed, failed);
    return failed != 0;
}
