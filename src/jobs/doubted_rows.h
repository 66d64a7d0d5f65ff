/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doubted_rows.h - which rows to doubt once a device turns out to compute something else than it promised: those that it had a part in
 * since some of its results were last looked at and found right.  Kept while a job runs, a row's name from and to, by device and format.
 */
#ifndef TM_JOBS_DOUBTED_ROWS_H
#define TM_JOBS_DOUBTED_ROWS_H

#include "execute/runner.h"

#define TM_DOUBT_MOST 48u
#define TM_DOUBT_NAME_BYTES 64u

typedef struct tm_doubt {
  uint32_t device;
  uint32_t format;
  uint64_t wrong_before;        /* times that the device was found wrong when this began */
  uint64_t piece_count;         /* 0: there is nothing to doubt */
  char     first[TM_DOUBT_NAME_BYTES];
  char     last[TM_DOUBT_NAME_BYTES];
} tm_doubt;

typedef struct tm_doubted_rows {
  tm_doubt doubts[TM_DOUBT_MOST];
  uint32_t count;
} tm_doubted_rows;

/* A piece of the row of that name was computed so; `format` of what it read. */
void tm_doubted_rows_note(tm_doubted_rows *rows, const tm_inventory *inventory, const tm_run_outcome *outcome, uint32_t format,
                          tm_string name);
/* The sentence at `index` of what is to be said now; false past the last. */
#define TM_DOUBT_TEXT_BYTES 320u
bool tm_doubted_rows_tell(const tm_doubted_rows *rows, const tm_inventory *inventory, uint32_t index, char out_text[TM_DOUBT_TEXT_BYTES]);

#endif
