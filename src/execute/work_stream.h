/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work_stream.h - a stream of independent operations, run by every device that helps.  The caller's thread runs one piece after
 * the other, wherever each is best placed, as it would without a stream.  Beside it, devices that keep other silicon busy
 * pull pieces on threads of their own, as long as that ends earlier (solver/pull.h); one with memory of its own and several
 * queues gets two, so that one piece is copied while the other is computed.  A lane whose device fails gives its piece back and is
 * gone for the rest of the stream; the caller's thread, which has all devices to fall back on, takes it.  So a stream needs no
 * device but one, and what comes out never depends on who took what: order is the work's business.  Small pieces go many at a time
 * to a device that spends more on a run than on what it computes.
 */
#ifndef TM_EXECUTE_WORK_STREAM_H
#define TM_EXECUTE_WORK_STREAM_H

#include "execute/runner.h"

typedef struct tm_work_stream_piece {
  tm_request request;           /* only_device is filled in by the stream */
  uint64_t   bytes;             /* that it reads: pieces are weighed by them */
  uint64_t   load_ns;           /* that `load` took; filled in by the stream */
  void      *subject;           /* these two are the work's own */
  uint64_t   begin;
} tm_work_stream_piece;

/* Memory that a lane keeps from piece to piece, for the work's use. */
typedef struct tm_work_stream_room {
  tm_scratch      *scratch;
  tm_scratch_block block;
} tm_work_stream_room;

typedef struct tm_work_stream_source {
  void    *context;
  uint64_t bytes_total;
  uint64_t result_bytes;        /* a piece's output 0: memory for it comes with the lane */
  uint64_t small_bytes;         /* pieces of at most so many bytes may run many at once (batch.h); 0: each runs by itself */
  /* Under the stream's lock.  The next piece, in order.   TM_OK, TM_END (there are no more), TM_PENDING (not before another
     piece is done), TM_ERROR_* (the stream ends with it) */
  tm_status (*next)(void *context, tm_work_stream_piece *out_piece, tm_error *error);
  /* On the lane's thread, several at once.  Addresses of the piece's inputs.   TM_OK, TM_ERROR_* (likewise) */
  tm_status (*load)(void *context, const tm_work_stream_piece *piece, tm_work_stream_room *room, void **out_pointers, tm_error *error);
  /* NULL, or on the lane's thread, without the lock, several at once: the piece ran, and the work goes on with its operands before
     they are the lane's again.  Such pieces run one by one.   TM_OK, TM_ERROR_* (likewise) */
  tm_status (*deliver)(void *context, const tm_work_stream_piece *piece, tm_work_stream_room *room, void *const *pointers,
                       tm_error *error);
  /* NULL, or on a lane's thread, with the lock or without: the piece's operation failed for good.  Says in `error` which it was. */
  void (*blame)(void *context, const tm_work_stream_piece *piece, tm_status status, tm_error *error);
  /* Under the stream's lock.  The piece is done.   TM_OK, TM_ERROR_* (likewise) */
  tm_status (*done)(void *context, const tm_work_stream_piece *piece, const void *result, const tm_run_outcome *outcome, tm_error *error);
  /* On the caller's thread, between two pieces, without the lock.   TM_OK, TM_ERROR_* (likewise) */
  tm_status (*advance)(void *context, tm_error *error);
  /* Under the stream's lock.  Something for people to know. */
  void (*note)(void *context, const char *text);
} tm_work_stream_source;

typedef struct tm_work_stream_report {
  uint64_t elapsed_ns;
  uint64_t bound_ns;            /* the least that the lanes, as fast as they were, would have taken */
  uint32_t lane_count;          /* that did something, the caller's included */
  uint32_t given_back_count;    /* pieces that a lane failed at */
} tm_work_stream_report;

/* Takes memory at least this large; it stays the lane's.  NULL without memory. */
void *tm_work_stream_room_take(tm_work_stream_room *room, uint64_t bytes);

/* Returns when all pieces are done, or none is running any more.  out_report may be NULL.
   TM_ERROR_CANCELLED (runner->cancelled), what the work returned, and as tm_runner_run: after TM_ERROR_INTERNAL a device may
   still use what `load` gave and `done` was to get, which is then never freed where it is the stream's own */
tm_status tm_work_stream_run(const tm_runner *runner, const tm_work_stream_source *work, tm_work_stream_report *out_report, tm_error *error);

#endif
