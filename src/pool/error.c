/* SPDX-License-Identifier: MIT */
/*
 * error.c - the names and texts of the error codes, and the version of the library
 *
 * The list of the codes is FJ_ERRORS in forkjoin.h.
 */
#include <forkjoin.h>

const char *fj_error_name(int code)
{
    switch (code) {
#define ERROR_NAME(name, value, text) \
    case name: return #name;
        FJ_ERRORS(ERROR_NAME)
#undef ERROR_NAME
        default: return code > 0 ? "user" : "unknown";
    }
}

const char *fj_strerror(int code)
{
    switch (code) {
#define ERROR_TEXT(name, value, text) \
    case name: return text;
        FJ_ERRORS(ERROR_TEXT)
#undef ERROR_TEXT
        default: return code > 0 ? "code of the task" : "unknown error";
    }
}

int fj_version(void)
{
    return FJ_VERSION;
}
