/* SPDX-License-Identifier: Apache-2.0 */
/* work_stream_state.h - what the lanes of a stream share. */
#ifndef TM_EXECUTE_WORK_STREAM_STATE_H
#define TM_EXECUTE_WORK_STREAM_STATE_H

#include "execute/batch.h"
#include "execute/work_stream.h"
#include "solver/pull.h"

#define TM_WORK_STREAM_WINDOW 16u            /* pieces that a lane can choose from */
#define TM_WORK_STREAM_ENTRIES (TM_WORK_STREAM_WINDOW + TM_PULL_MOST_LANES)       /* these, and one that each lane has taken */
#define TM_WORK_STREAM_MOST_ENTRIES (TM_WORK_STREAM_ENTRIES + TM_PULL_MOST_LANES * TM_BATCH_MOST)
#define TM_WORK_STREAM_OFFERS 32u            /* kinds of pieces that a lane remembers the price of */

typedef struct tm_work_stream tm_work_stream;

typedef struct tm_work_stream_entry {
  tm_work_stream_piece piece;
  uint64_t        kind;                 /* a hash of its request: pieces of one kind cost the same */
} tm_work_stream_entry;

typedef struct tm_work_stream_offer {
  uint64_t      kind;                   /* 0: free */
  tm_pull_offer offer;
} tm_work_stream_offer;

/* What a lane that runs many pieces at once has. */
typedef struct tm_work_stream_batch {
  tm_batch              runs;
  tm_work_stream_entry *taken[TM_BATCH_MOST];
  uint32_t              taken_count;
  uint32_t              batch_count;
  uint32_t              most;           /* pieces at once, so that one who is in a hurry does not wait for long */
  bool                  has_failed;     /* from then on each piece runs by itself */
  tm_work_stream_entry  pool[TM_BATCH_MOST];    /* among the stream's spare ones: any lane may have them, as long as one runs */
} tm_work_stream_batch;

/* Pieces that are to run one by one. */
typedef struct tm_work_stream_rest {
  tm_work_stream_entry *entries[TM_BATCH_MOST];
  uint32_t              count;
} tm_work_stream_rest;

/* A thread that pulls for one device.  The first of a stream is the caller's own: it has no device. */
typedef struct tm_work_stream_lane {
  tm_work_stream       *stream;
  uint32_t         index;
  tm_device_slot  *device;
  tm_thread        thread;
  tm_work_stream_room   room;
  void            *result;
  bool             is_held;             /* a device may still use its room and its result: they stay */
  tm_work_stream_offer  offers[TM_WORK_STREAM_OFFERS];
  uint32_t         offer_count;         /* ever made: the oldest goes first */
  tm_work_stream_batch *batch;          /* NULL: it has none yet */
} tm_work_stream_lane;

struct tm_work_stream {
  const tm_runner      *runner;
  const tm_work_stream_source *work;
  tm_mutex              lock;           /* everything below */
  tm_condition          changed;
  tm_pull_state         pull;
  tm_work_stream_lane       *lanes;          /* TM_PULL_MOST_LANES */
  tm_work_stream_entry      *entries;        /* TM_WORK_STREAM_ENTRIES */
  tm_work_stream_entry      *window[TM_WORK_STREAM_MOST_ENTRIES];      /* those to choose from, oldest first */
  tm_work_stream_entry      *spare[TM_WORK_STREAM_MOST_ENTRIES];
  uint32_t              window_count;
  uint32_t              spare_count;
  uint32_t              in_flight;
  uint32_t              given_back_count;
  bool                  is_at_end;      /* the work has no more pieces */
  bool                  is_over;        /* nothing is taken any more */
  uint64_t              recruit_ns;     /* the caller's own: when to look for helpers again */
  uint32_t              home;           /* the caller's own: the device that it keeps to while it has helpers, or TM_ANY_DEVICE */
  tm_status             status;
  tm_error              error;
};

/* ---- under the lock ---- */

/* Fills the window as far as there are pieces: with one lane, which has no choice, one. */
void tm_work_stream_fill(tm_work_stream *stream);
/* Takes piece `index` out of the window; it is the lane's until it is finished or given back. */
tm_work_stream_entry *tm_work_stream_take(tm_work_stream *stream, uint32_t index);
/* Puts a piece that a lane failed at in front of all others. */
void tm_work_stream_give_back(tm_work_stream *stream, tm_work_stream_entry *entry);
/* The stream ends with this; the first one counts. */
void tm_work_stream_fail(tm_work_stream *stream, tm_status status, const tm_error *error);
/* Accounts for a piece that ran, and hands it to the work. */
void tm_work_stream_finish(tm_work_stream *stream, uint32_t lane, tm_work_stream_entry *entry, const void *result, const tm_run_outcome *outcome,
                      uint64_t taken_ns);

/* ---- without it ---- */

bool tm_work_stream_is_cancelled(const tm_work_stream *stream);
/* Whether what a lane was given for a run that ended so may still be used by a device. */
bool tm_work_stream_is_held(const tm_work_stream *stream, tm_status status);

/* Has the work load the piece for the lane; tells how long that took in the piece. */
tm_status tm_work_stream_load(tm_work_stream_lane *lane, tm_work_stream_piece *piece, void **out_pointers, tm_error *error);

/* Has the work go on with what the lane ran.  What it fails with ends the stream. */
tm_status tm_work_stream_deliver(tm_work_stream_lane *lane, const tm_work_stream_piece *piece, void *const *pointers, tm_error *error);

/* Has the work say in `error` which piece it was that failed for good. */
void tm_work_stream_blame(const tm_work_stream *stream, const tm_work_stream_piece *piece, tm_status status, tm_error *error);

/* The price of a kind of piece to a lane beside the caller's; NULL: it does not know it. */
const tm_pull_offer *tm_work_stream_offer_of(const tm_work_stream_lane *lane, uint64_t kind);
/* It ran: what it took counts for more than what was promised. */
void tm_work_stream_learn_offer(tm_work_stream_lane *lane, const tm_work_stream_entry *entry, const tm_run_outcome *outcome);
/* Whether the caller's own piece is to run on the device that this thread keeps to. */
bool tm_work_stream_suits_home(tm_work_stream *stream, const tm_request *request);

/* Runs the piece, and more that are taken for it, at once, where that gains.  What did not run so is in out_rest, `first` included.
   TM_ERROR_CANCELLED, what the work returned; if strict, what the device failed with; but lack of memory is never an end */
tm_status tm_work_stream_run_together(tm_work_stream_lane *lane, tm_work_stream_entry *first, tm_work_stream_rest *out_rest,
                                      tm_error *error);

/* Frees what a lane had, but for what a device may still use. */
void tm_work_stream_lane_deinit(tm_work_stream_lane *lane);

/* Starts lanes for devices that would help with a piece like this one; `used` is the device that the caller's thread uses. */
void tm_work_stream_recruit(tm_work_stream *stream, const tm_work_stream_piece *like, uint32_t used);
/* Waits for the threads of all lanes. */
void tm_work_stream_join(tm_work_stream *stream);

#endif
