/* SPDX-License-Identifier: MIT */
/*
 * tree.c - the number and the total size of all files below a folder; each folder is a task
 *
 * The tasks are plain tasks: a task reads its folder and runs one task for each folder in it with
 * fj_invoke_array(). The walk stays on one file system and follows no symbolic links. prepare()
 * walks the tree once before the timed runs, so that both runs find it in the kernel's cache.
 */
#define _DEFAULT_SOURCE

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "demo.h"

typedef struct totals {
    uint64_t folders, files, bytes, unread;
} totals;

struct folder {
    fj_task task;
    char *path;
    totals sum; /* of the folder and all folders below it */
};

typedef struct folders {
    struct folder *item;
    size_t n, cap;
} folders;

static struct {
    const char *root;
    dev_t device;
    totals serial, parallel;
} tree;

static void add(totals *to, const totals *from)
{
    to->folders += from->folders;
    to->files += from->files;
    to->bytes += from->bytes;
    to->unread += from->unread;
}

static bool equal(const totals *a, const totals *b)
{
    return a->folders == b->folders && a->files == b->files && a->bytes == b->bytes &&
           a->unread == b->unread;
}

static void add_folder(folders *list, const char *parent, const char *name, fj_task_fn *fn)
{
    size_t length = strlen(parent) + strlen(name) + 2;

    if (list->n == list->cap) {
        list->cap = list->cap == 0 ? 8 : 2 * list->cap;
        list->item = realloc(list->item, list->cap * sizeof list->item[0]);
        if (list->item == NULL) demo_fail("out of memory");
    }
    struct folder *f = &list->item[list->n++];
    memset(f, 0, sizeof *f);
    fj_task_init(&f->task, fn);
    f->path = demo_alloc(length, 1);
    snprintf(f->path, length, "%s/%s", parent, name);
}

static void free_folders(folders *list)
{
    for (size_t i = 0; i < list->n; i++) free(list->item[i].path);
    free(list->item);
}

/* Counts the files in f and appends the folders in f to `list`, as tasks with the body `fn`. */
static void read_folder(struct folder *f, folders *list, fj_task_fn *fn)
{
    struct stat s;
    DIR *d = opendir(f->path);

    if (d == NULL) {
        f->sum.unread++;
        return;
    }
    if (fstat(dirfd(d), &s) != 0 || s.st_dev != tree.device) {
        closedir(d);
        return;
    }
    f->sum.folders++;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (e->d_type == DT_DIR) {
            add_folder(list, f->path, e->d_name, fn);
            continue;
        }
        if (fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (S_ISDIR(s.st_mode)) { /* readdir() did not report the type */
            add_folder(list, f->path, e->d_name, fn);
        } else if (S_ISREG(s.st_mode)) {
            f->sum.files++;
            f->sum.bytes += (uint64_t)s.st_size;
        }
    }
    closedir(d);
    demo_step(1);
}

static int folder_run(fj_task *t)
{
    struct folder *f = (struct folder *)t;
    folders list = {0};
    int err = FJ_OK;

    read_folder(f, &list, folder_run);
    if (list.n > 0) err = fj_invoke_array(list.item, list.n, sizeof list.item[0]);
    for (size_t i = 0; i < list.n; i++) add(&f->sum, &list.item[i].sum);
    free_folders(&list);
    return err;
}

static void walk(struct folder *f)
{
    folders list = {0};

    read_folder(f, &list, NULL);
    for (size_t i = 0; i < list.n; i++) {
        walk(&list.item[i]);
        add(&f->sum, &list.item[i].sum);
    }
    free_folders(&list);
}

static totals walk_root(void)
{
    char path[4096];
    struct folder root = {.path = path};

    snprintf(path, sizeof path, "%s", tree.root);
    walk(&root);
    return root.sum;
}

static uint64_t prepare(const demo_options *o, char *what, size_t cap)
{
    struct stat s;

    tree.root = o->dir;
    if (stat(tree.root, &s) != 0) demo_fail("the folder does not exist any more");
    tree.device = s.st_dev;
    tree.serial = walk_root(); /* fills the cache and counts the files */
    snprintf(what, cap, "%s: %llu files, %llu MB", tree.root, (unsigned long long)tree.serial.files,
             (unsigned long long)(tree.serial.bytes / 1000000));
    return tree.serial.folders;
}

static void run_serial(void)
{
    tree.serial = walk_root();
}

static int run_parallel(void)
{
    char path[4096];
    struct folder root = {.path = path};

    snprintf(path, sizeof path, "%s", tree.root);
    fj_task_init(&root.task, folder_run);
    int err = fj_invoke(NULL, &root.task);
    tree.parallel = root.sum;
    return err;
}

/* Another process may have changed the folder between the two runs. If the results differ, both
 * walks are repeated, at most three times, until they agree. */
static bool finish(const demo_options *o, char *note, size_t cap)
{
    (void)o;
    if (equal(&tree.serial, &tree.parallel)) return true;
    snprintf(note, cap, "the files changed between the two runs; the folder was read again");
    for (int tries = 0; tries < 3; tries++) {
        tree.serial = walk_root();
        if (equal(&tree.serial, &tree.parallel)) return true;
        if (run_parallel() != FJ_OK) return false;
    }
    return false;
}

const demo demo_tree = {"folder tree", prepare, run_serial, run_parallel, finish};
