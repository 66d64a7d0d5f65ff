/* SPDX-License-Identifier: Apache-2.0 */
/* memory_limit.h - what is told of the limit when memory does not suffice: what is allowed is what can be changed. */
#ifndef TM_BASE_MEMORY_LIMIT_H
#define TM_BASE_MEMORY_LIMIT_H

#include "base/memory.h"
#include "tensormorph/types.h"

/* Returns `status`, and adds the limit to the text of a TM_ERROR_NO_MEMORY that does not tell it yet.  error: may be NULL */
tm_status tm_memory_name_limit(const tm_memory *memory, tm_status status, tm_error *error);

#endif
