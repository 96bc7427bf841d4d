/* SPDX-License-Identifier: MIT */
/*
 * 14_directory_scan.c - a group: work whose parts are not known in advance
 *
 * The program adds up the sizes of all files below a directory. The number of directories is not
 * known in advance. So each directory becomes a child of a group, and a child adds a child for
 * each directory that it finds. fj_group_fini() waits for all of them and returns the first error,
 * for example that a directory cannot be read.
 *
 *     14_directory_scan [DIRECTORY]
 *
 * Without an argument the program makes a small tree of its own and checks the result.
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <forkjoin/group.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long files, bytes;

struct directory {
    fj_group_task task; /* first */
    char path[4096];
};

static int add(fj_group *g, const char *parent, const char *name);

/* The body of a child: reads one directory. */
static int scan(fj_group_task *t)
{
    struct directory *d = (struct directory *)t;
    DIR *dir = opendir(d->path);
    int err = dir == NULL ? errno : 0;
    struct dirent *e;
    struct stat s;

    while (err == 0 && (e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (fstatat(dirfd(dir), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) {
            err = errno;
        } else if (S_ISDIR(s.st_mode)) {
            err = add(fj_group_of(t), d->path, e->d_name);
        } else if (S_ISREG(s.st_mode)) {
            atomic_fetch_add(&files, 1);
            atomic_fetch_add(&bytes, (long)s.st_size);
        }
    }
    if (dir != NULL) closedir(dir);
    free(d); /* the library does not use it any more */
    return err;
}

/* Adds a child for the directory `name` in `parent`. */
static int add(fj_group *g, const char *parent, const char *name)
{
    struct directory *d = malloc(sizeof *d);

    if (d == NULL) return ENOMEM;
    fj_group_task_init(&d->task, scan);
    int n = snprintf(d->path, sizeof d->path, "%s/%s", parent, name);
    int err = n < (int)sizeof d->path ? fj_group_run(g, &d->task) : ENAMETOOLONG;
    if (err != FJ_OK) free(d);
    return err;
}

/* Adds up the files below the directory. Returns FJ_OK or the first error: a number of errno, or a
 * code of the library. */
static int scan_tree(const char *path)
{
    fj_group g;
    int err = fj_group_init(&g, NULL); /* NULL: the common pool, and errors do not stop the rest */

    if (err != FJ_OK) return err;
    err = add(&g, path, ".");
    int first = fj_group_fini(&g);
    return err != FJ_OK ? err : first;
}

/* ---- The tree that the program checks itself with -------------------------------------------- */

/* Makes two files of 100 bytes in the working directory, and three such trees of one level less.
 * Removes them if `make` is 0. Returns whether that succeeded. */
static int tree(int depth, int make)
{
    char file[] = "file0", directory[] = "0", text[100] = {0};
    int ok = 1;

    for (int i = 0; i < 2; i++, file[4]++) {
        FILE *f = make ? fopen(file, "w") : NULL;
        if (!make) ok &= unlink(file) == 0;
        if (make) ok &= f != NULL && fwrite(text, 1, sizeof text, f) == sizeof text;
        if (f != NULL) ok &= fclose(f) == 0;
    }
    for (int i = 0; depth > 0 && i < 3; i++, directory[0]++) {
        if (make && mkdir(directory, 0700) != 0) return 0;
        ok &= chdir(directory) == 0 && tree(depth - 1, make) && chdir("..") == 0;
        if (!make) ok &= rmdir(directory) == 0;
    }
    return ok;
}

int main(int argc, char **argv)
{
    char root[] = "/tmp/forkjoin-scan-XXXXXX";

    if (argc > 1) {
        int err = scan_tree(argv[1]);
        printf("%ld files, %ld bytes; first error: %d\n", files, bytes, err);
        return err != FJ_OK;
    }
    if (mkdtemp(root) == NULL || chdir(root) != 0 || !tree(2, 1)) return 1;
    int found = scan_tree("."), missing = scan_tree("nonexistent");
    if (!tree(2, 0) || rmdir(root) != 0) return 1;
    printf("%ld files, %ld bytes; a directory that does not exist: %s\n", files, bytes,
           strerror(missing));
    return found != FJ_OK || files != 26 || bytes != 2600 || missing != ENOENT;
}
