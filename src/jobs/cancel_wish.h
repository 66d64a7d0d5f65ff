/* SPDX-License-Identifier: Apache-2.0 */
/* cancel_wish.h - whether an application no longer wants what it has called for, and is still waiting for. */
#ifndef TM_JOBS_CANCEL_WISH_H
#define TM_JOBS_CANCEL_WISH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* The application's own number, which any of its threads and signal handlers may set; NULL: it has none.   TM_ERROR_CANCELLED */
static inline tm_status tm_cancel_wish_check(const volatile uint32_t *cancelled, tm_error *error) {
  const bool wants_on = cancelled == NULL || __atomic_load_n(cancelled, __ATOMIC_RELAXED) == 0;
  return wants_on ? TM_OK : tm_fail(error, TM_ERROR_CANCELLED, "cancelled");
}

#endif
