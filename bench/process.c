#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void become(char *const arguments[], int core, int output,
                             pid_t parent)
{
    cpu_set_t set;

    /* The parent may have died before this could tell of it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(127);
    CPU_ZERO(&set);
    if (core >= 0) {
        CPU_SET((size_t)core, &set);
        if (sched_setaffinity(0, sizeof(set), &set) < 0)
            perror("sched_setaffinity");
    }
    dup2(output, STDOUT_FILENO);
    execv(arguments[0], arguments);
    perror(arguments[0]);
    _exit(127);
}

bool process_start(struct process *process, char *const arguments[], int core)
{
    pid_t parent = getpid();
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    pid = fork();
    if (pid == 0)
        become(arguments, core, ends[1], parent);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return false;
    }
    process->pid = pid;
    process->output = fdopen(ends[0], "r");
    return true;
}

bool process_read_line(struct process *process, char *line, size_t size)
{
    if (!process->output || !fgets(line, (int)size, process->output))
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

bool process_wait(struct process *process)
{
    pid_t pid = process->pid;
    int status = -1;

    if (process->output)
        fclose(process->output);
    *process = (struct process){0};
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

double process_cpu(const struct process *process)
{
    struct timespec time;
    clockid_t clock;

    if (clock_getcpuclockid(process->pid, &clock) ||
        clock_gettime(clock, &time))
        return -1;
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

void process_settle(const struct process *process)
{
    struct timespec pause = {.tv_nsec = 5000000};
    double before = -2;

    for (int i = 0; i < 200; i++) {
        double now = process_cpu(process);

        /* A sleeper's clock stands still; a runner's moves with each tick. */
        if (now <= before)
            return;
        before = now;
        nanosleep(&pause, NULL);
    }
}

double clock_seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

double machine_cpu(void)
{
    /* user, nice, system, idle, iowait, irq, softirq, steal */
    unsigned long long ticks[8] = {0};
    FILE *file = fopen("/proc/stat", "re");
    int found = 0;

    if (!file)
        return -1;
    found = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu",
                   &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4],
                   &ticks[5], &ticks[6], &ticks[7]);
    fclose(file);
    if (found < 8)
        return -1;
    return (double)(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] +
                    ticks[7]) *
           1e9 / (double)sysconf(_SC_CLK_TCK);
}

double ended_children_cpu(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_CHILDREN, &usage) < 0)
        return -1;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

bool find_value(const char *line, const char *name, double *ret_value)
{
    size_t length = strlen(name);
    const char *word = line;

    while ((word = strstr(word, name))) {
        bool whole = (word == line || word[-1] == ' ') && word[length] == ' ';
        char *end;
        double value = strtod(word + length, &end);

        if (whole && end != word + length) {
            *ret_value = value;
            return true;
        }
        word += length;
    }
    return false;
}

void find_cores(int *ret_first, int *ret_second)
{
    int found[2] = {-1, -1};
    cpu_set_t set;
    int count = 0;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        CPU_ZERO(&set);
    for (int core = 0; core < CPU_SETSIZE && count < 2; core++) {
        if (CPU_ISSET((size_t)core, &set))
            found[count++] = core;
    }
    *ret_first = count == 2 ? found[0] : -1;
    *ret_second = found[1];
}
