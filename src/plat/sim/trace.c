/* SPDX-License-Identifier: MIT */
/*
 * trace.c - prints a line for each traced step of a run, with the source line that made the step
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine.h"

#define TRACE_PLACES 4096 /* largest number of code addresses that are looked up */

static struct trace_place {
    const void *pc;
    char text[96];
} * trace_place;

/* Sets text, of n bytes, to the file, line and function of the code address pc. Runs the program
 * addr2line, which is slow. */
static void trace_look_up(const void *pc, char *text, size_t n)
{
    char command[128], function[128] = "?", line[256] = "?";

    snprintf(command, sizeof command, "addr2line -f -e /proc/%d/exe 0x%zx", (int)getpid(),
             (size_t)((uintptr_t)pc - sim_engine->program) - 1);
    FILE *f = popen(command, "r");
    if (f == NULL) return;
    if (fgets(function, sizeof function, f) == NULL || fgets(line, sizeof line, f) == NULL)
        function[0] = 0;
    pclose(f);
    function[strcspn(function, "\n")] = 0;
    line[strcspn(line, " \n")] = 0;
    const char *file = strrchr(line, '/');
    snprintf(text, n, "%s %s", file != NULL ? file + 1 : line, function);
}

/* Returns the text of trace_look_up() for the code address pc. Each address is looked up only once.
 * Returns "" if pc is NULL, or if TRACE_PLACES other addresses were looked up before. */
static const char *trace_at(const void *pc)
{
    if (pc == NULL) return "";
    if (trace_place == NULL) trace_place = calloc(TRACE_PLACES, sizeof *trace_place);
    if (trace_place == NULL) return "";
    for (int i = 0; i < TRACE_PLACES; i++) {
        struct trace_place *t = &trace_place[i];
        if (t->pc == pc) return t->text;
        if (t->pc != NULL) continue;
        t->pc = pc;
        trace_look_up(pc, t->text, sizeof t->text);
        return t->text;
    }
    return "";
}

void sim_trace_line(const void *pc, const char *format, ...)
{
    va_list list;
    char text[200];

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "%7ld  %2d  %-60s  %s\n", sim_engine->steps,
            sim_engine->now != NULL ? sim_engine->now->id : -1, text, trace_at(pc));
}

void sim_note(const char *text)
{
    sim_trace(__builtin_return_address(0), "-- %s", text);
}
