/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crew.h - threads that wait for something to do together.  A crew is as large as the system lets it be: one that gives fewer
 * threads than were asked for, or none, leaves more of the work to the caller.
 */
#ifndef TM_BASE_CREW_H
#define TM_BASE_CREW_H

#include "base/memory.h"
#include "tensormorph/types.h"

typedef struct tm_crew tm_crew;

/* Takes what is left of the work until nothing is. */
typedef void (*tm_crew_fn)(void *argument, uint32_t member);

/* The caller and up to size - 1 threads, which start with the first run.   TM_ERROR_NO_MEMORY */
tm_status tm_crew_create(tm_memory *memory, uint32_t size, tm_crew **out_crew, tm_error *error);
void      tm_crew_destroy(tm_crew *crew);

/* Calls `function` as member 0 on this thread, and at the same time as members 1 .. size - 1 on those threads that come before
   any of the calls has returned; returns when all have.  What this thread wrote before is seen by them, and what they wrote is
   seen by it.  [one thread at a time] */
void tm_crew_run(tm_crew *crew, uint32_t size, tm_crew_fn function, void *argument);

#endif
