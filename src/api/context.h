/* SPDX-License-Identifier: Apache-2.0 */
/* context.h - what an application's tm_context holds: the layers below, in the order in which they are built. */
#ifndef TM_API_CONTEXT_H
#define TM_API_CONTEXT_H

#include "base/struct_copy.h"
#include "execute/runner.h"
#include "schedule/explanation.h"
#include "schedule/profile.h"

struct tm_context {
  tm_memory          memory;
  tm_log             log;
  uint32_t           flags;
  uint32_t           worst_numerics;    /* TM_NUMERICS_*, or TM_NUMERICS_DEFAULT: each operation's own */
  uint32_t           max_open_files;
  uint64_t           max_header_bytes;
  tm_pool           *pool;
  struct tm_crash_marks *crash_marks;   /* NULL: none are kept */
  tm_inventory      *inventory;
  const char       **exclusions;        /* by device: why it is not to be used; NULL where it is.  Static texts */
  tm_correction      correction;
  tm_health          health;
  tm_placement_table placements;
  tm_scratch         scratch;
  tm_setup_ledger    setups;
  tm_profile         profile;
  tm_kept_constants  kept;
  tm_runner          runner;
};

/* The class that a call accepts: its own word, else the context's, else the operation's default. */
uint32_t tm_context_accepts(const tm_context *context, const tm_op_row *row, uint32_t asked);

/* Reads options that the caller may have built with another version: what a shorter struct does not reach is zero, what a
   longer one says beyond `known_bytes` must be zero.  `what` is for messages.   TM_ERROR_ARGUMENT */
tm_status tm_copy_in(const void *given, const char *what, void *out_known, uint32_t known_bytes, tm_error *error);
/* For what options keep for a later version: whoever sets it means something that this one does not do.   TM_ERROR_ARGUMENT */
tm_status tm_expect_reserved(uint32_t value, const char *what, tm_error *error);

#endif
