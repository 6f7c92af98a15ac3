#include "base/kernel.h"
#include "base/message.h"
#include "core/request.h"
#include "core/task.h"
#include <stdarg.h>

/*
 * What the tasks of a context are doing, for people.
 */

enum { DUMP_LINE = 320, DUMP_LISTED = 100 };

struct dump_line {
    char *text;
    size_t capacity, length;
};

static __attribute__((format(printf, 2, 3))) void
line_add(struct dump_line *line, const char *format, ...)
{
    size_t room = line->capacity - line->length;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line->text + line->length, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        line->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void line_add_request(struct dump_line *line,
                             const coil_request *request)
{
    const coil_operation *operation = &request->operation;

    line_add(line, "waiting for %s", operation->type->name);
    if (operation->type->flags & COIL__OPERATION_HAS_HANDLE)
        line_add(line, " on descriptor %d", operation->handle.descriptor);
    if (request->reason)
        line_add(line, " (being cancelled: %s)",
                 coil_error_name(request->reason));
}

static void line_add_state(struct dump_line *line, const coil_task *task)
{
    if (task->context->running == task)
        line_add(line, "running");
    else if (task->ready)
        line_add(line, "ready");
    else if (task->waiting)
        line_add_request(line, task->waiting);
    else if (task->wait)
        line_add(line, "waiting for %zu of %zu requests", task->wait->running,
                 task->wait->count);
    else if (task->awaiting)
        line_add(line, "waiting for the end of task \"%s\" (%p)",
                 coil_task_name(task->awaiting), (void *)task->awaiting);
    else if (task->reaping)
        line_add(line, "waiting for %zu requests of a scope that ends",
                 task->reap_left);
    else
        line_add(line, "waiting for a %s",
                 task->scope->is_group ? "group" : "close");
}

static void line_add_scopes(struct dump_line *line, const coil_task *task,
                            coil_time now)
{
    coil_time deadline = coil__scope_first_deadline(task);

    if (task->waiting && task->deadline < deadline)
        deadline = task->deadline;
    if (deadline != COIL_FOREVER)
        line_add(line, ", limit in %.3f s", (double)(deadline - now) / 1e9);
    if (task->scope->cancelled)
        line_add(line, ", cancelled (%u waits in a row refused)",
                 task->refusals);
}

void coil__task_describe(const coil_task *task, char *ret_text, size_t capacity)
{
    struct dump_line line = {.text = ret_text, .capacity = capacity};
    coil_time now = coil__kernel_now();

    line_add(&line, "task \"%s\" (%p) ", coil_task_name(task),
             (const void *)task);
    line_add_state(&line, task);
    if (task->context->running != task)
        line_add(&line, " since %.3f s", (double)(now - task->since) / 1e9);
    line_add_scopes(&line, task, now);
}

static coil_task *dump_task(const struct coil__list *node)
{
    return COIL__CONTAINER(node, coil_task, siblings);
}

void coil_context_dump(const coil_context *context, FILE *stream)
{
    const struct coil__list *node;
    char line[DUMP_LINE];

    fprintf(stream, "context %p: %zu tasks%s\n", (const void *)context,
            context->tasks_live, context->draining ? ", stopped" : "");
    for (node = context->tasks.next; node != &context->tasks;
         node = node->next) {
        coil__task_describe(dump_task(node), line, sizeof(line));
        fprintf(stream, "  %s\n", line);
    }
}

void coil__task_list_alive(const coil_context *context)
{
    const struct coil__list *node;
    char line[DUMP_LINE];
    unsigned listed = 0;

    for (node = context->tasks.next; node != &context->tasks;
         node = node->next) {
        if (++listed > DUMP_LISTED) {
            coil__message(COIL_MESSAGE_STALL, "and %zu more tasks",
                          context->tasks_live - listed + 1);
            return;
        }
        coil__task_describe(dump_task(node), line, sizeof(line));
        coil__message(COIL_MESSAGE_STALL, "still alive: %s", line);
    }
}
