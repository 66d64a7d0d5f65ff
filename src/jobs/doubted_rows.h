/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doubted_rows.h - which rows to doubt once a device turns out to compute something else than it promised: all that it had a part in.
 * A result that was looked at and found right says nothing of those before it, for a device may be wrong now and then.  Kept while a job
 * runs, a row's name from and to, by device and kind of work: what is wrong about one kind says nothing of another.
 */
#ifndef TM_JOBS_DOUBTED_ROWS_H
#define TM_JOBS_DOUBTED_ROWS_H

#include "execute/runner.h"

#define TM_DOUBT_MOST 48u
#define TM_DOUBT_NAME_BYTES 64u
#define TM_DOUBT_ANY UINT32_MAX

typedef struct tm_doubt {
  uint32_t device;              /* TM_DOUBT_ANY: of several */
  bool     is_one;              /* from `first` to `last` it is one row */
  const struct tm_trial *trial; /* stands for the kind; NULL: nobody keeps account of it */
  uint64_t wrong_before;        /* times that the device was found wrong when this began */
  uint64_t piece_count;         /* 0: there is nothing to doubt */
  uint64_t first_hash;          /* of the whole name */
  char     first[TM_DOUBT_NAME_BYTES];  /* as it can be shown */
  char     last[TM_DOUBT_NAME_BYTES];
} tm_doubt;

typedef struct tm_doubted_rows {
  tm_doubt doubts[TM_DOUBT_MOST];
  uint32_t count;
} tm_doubted_rows;

/* A piece of the row of that name was computed so. */
void tm_doubted_rows_note(tm_doubted_rows *rows, const tm_inventory *inventory, const tm_run_outcome *outcome, tm_string name);
/* The sentence at `index` of what is to be said now; false past the last. */
#define TM_DOUBT_TEXT_BYTES 320u
bool tm_doubted_rows_tell(const tm_doubted_rows *rows, const tm_inventory *inventory, uint32_t index, char out_text[TM_DOUBT_TEXT_BYTES]);

#endif
