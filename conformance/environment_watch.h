/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment_watch.h - tells who changes the environment.  setenv and its like of this program stand before those of the C
 * library for all that it loads, and look at who calls.  Changes that go past them (to `environ` itself) are nobody's.
 *
 * A variable is excused if a driver added it: a library that came after the watch began, so that neither the host nor the
 * backend was linked to it.  Whoever else touches it, another driver as well, ends that.
 */
#ifndef CONFORMANCE_ENVIRONMENT_WATCH_H
#define CONFORMANCE_ENVIRONMENT_WATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Before the backend's first call in this process; forgets what was excused before. */
void environment_watch_begin(void);
/* From now on nothing more is excused, and what is excused and touched again is so no longer. */
void environment_watch_end(void);
/* Whether this entry of the environment, "NAME=VALUE", is excused. */
bool environment_watch_excuses(const char *entry);
/* "libdriver.so, which it opens, sets NAME once" ("2 times" if it did so again before the end), or "". */
void environment_watch_describe(char *text, size_t capacity);

#endif
