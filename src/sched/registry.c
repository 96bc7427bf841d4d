/* SPDX-License-Identifier: MIT */
/*
 * registry.c - the list of all pools of the process; see registry.h
 */

#include "sched/registry.h"

static fji_lock registry_lock;
static fj_pool *registry_list; /* the first pool; protected by registry_lock */

void fji_registry_add(fj_pool *p)
{
    fji_lock_take(&registry_lock);
    p->next = registry_list;
    p->link = &registry_list;
    if (p->next != NULL) p->next->link = &p->next;
    registry_list = p;
    fji_lock_drop(&registry_lock);
}

void fji_registry_remove(fj_pool *p)
{
    fji_lock_take(&registry_lock);
    *p->link = p->next;
    if (p->next != NULL) p->next->link = p->link;
    fji_lock_drop(&registry_lock);
}

void fji_registry_each(void (*each)(fj_pool *p, void *arg), void *arg)
{
    fji_lock_take(&registry_lock);
    for (fj_pool *p = registry_list; p != NULL; p = p->next) each(p, arg);
    fji_lock_drop(&registry_lock);
}

void fji_registry_lock(void)
{
    fji_lock_take(&registry_lock);
}

void fji_registry_unlock(void)
{
    fji_lock_drop(&registry_lock);
}

void fji_registry_reset_lock(void)
{
    fji_lock_reset(&registry_lock);
}
