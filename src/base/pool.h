/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - the one thread pool of a context, shared by every backend and job, so that nobody oversubscribes the cores.
 */
#ifndef TM_BASE_POOL_H
#define TM_BASE_POOL_H

#include <stdbool.h>

#include "base/memory.h"
#include "tensormorph/types.h"

typedef struct tm_pool tm_pool;
typedef void (*tm_pool_fn)(void *argument, uint64_t begin, uint64_t end, uint32_t lane);

/* lane_count 0: one a core that this process may use; at most 4 a core, or 16.  Threads start when first needed; a
   system that refuses some, or all, leaves their part to the others.
   TM_ERROR_NO_MEMORY */
tm_status tm_pool_create(tm_memory *memory, uint32_t lane_count, tm_pool **out_pool, tm_error *error);
void      tm_pool_destroy(tm_pool *pool);
/* A name for the calling thread, and whether that thread's work has the pool. */
const void *tm_pool_thread(void);
bool        tm_pool_is_held_by(const tm_pool *pool, const void *thread);
uint32_t  tm_pool_lane_count(const tm_pool *pool);

/*
 * Calls `function` over [0, count), split at multiples of `grain`, and returns when all is done.  The calling thread takes
 * part.  Runs inline, as lane 0, when called from inside itself or while another thread uses the pool: then the cores are
 * busy anyway, and nobody waits for anybody.  [any thread]
 */
void tm_pool_run(tm_pool *pool, uint64_t count, uint64_t grain, tm_pool_fn function, void *argument);

#endif
