/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory_limit.h"
#include "base/struct_copy.h"
#include "jobs/doubted_rows.h"

#define MOST_NOTES 1000u
#define ROWS_PER_CHUNK 256u

/* A cell without what its column says: of a million rows each word counts. */
typedef struct kept_cell {
  union {
    double          number;
    const char     *text;
    const uint64_t *shape;
  } value;
  uint64_t count;               /* of an undefined one UNDEFINED */
} kept_cell;
_Static_assert(sizeof(kept_cell) == TM_JOB_CELL_BYTES, "what job.h says that a cell takes");

#define UNDEFINED UINT64_MAX

/* Rows live in chunks that never move, so that a reader's texts stay where they are. */
typedef struct row_chunk {
  kept_cell *cells;             /* ROWS_PER_CHUNK * column_count */
} row_chunk;

struct tm_job {
  tm_memory    *memory;
  tm_inventory *inventory;
  tm_job_plan   plan;
  tm_thread     thread;
  uint64_t      started_ns;
  _Atomic uint32_t cancelled;
  _Atomic uint64_t bytes_total;
  _Atomic uint64_t items_total;
  _Atomic uint64_t bytes_done;
  _Atomic uint64_t items_done;
  _Atomic uint64_t row_count;
  tm_mutex      lock;           /* everything below */
  tm_condition  ended;
  bool          has_ended;
  uint64_t      ended_ns;
  tm_status     status;
  tm_error      error;
  tm_arena      arena;          /* texts, shapes, cells, notes */
  row_chunk    *chunks;
  uint64_t      chunk_count;
  const char  **notes;
  uint32_t      note_count;
  tm_device_usage *usage;       /* one a device; those with no operations are not shown */
  tm_doubted_rows doubted;
};

/* ---- life ---- */

static void tell_doubts(tm_job *job) {
  char text[TM_DOUBT_TEXT_BYTES];
  for (uint32_t i = 0; tm_doubted_rows_tell(&job->doubted, job->inventory, i, text); i++) tm_job_add_note(job, text);
}

/* Work that was done before it saw a cancel is done. */
static void *job_thread(void *argument) {
  tm_job *job = argument;
  tm_error error = TM_ERROR_INIT;
  tm_mutex_lock(&job->lock);    /* until whoever started it has its handle: the callback may look for it there */
  tm_mutex_unlock(&job->lock);
  const tm_status status = job->plan.work->run(job, job->plan.state, &error);
  if (status == TM_ERROR_CANCELLED) (void)tm_fail(&error, status, "cancelled");
  (void)tm_memory_name_limit(job->memory, status, &error);
  tell_doubts(job);
  tm_mutex_lock(&job->lock);
  job->status = status;
  job->error = error;
  job->ended_ns = tm_now_ns();
  job->has_ended = true;
  tm_condition_wake_all(&job->ended);
  tm_mutex_unlock(&job->lock);
  if (job->plan.complete != NULL) job->plan.complete(job->plan.complete_context, job);
  return NULL;
}

static void free_job(tm_job *job) {
  tm_memory *memory = job->memory;
  if (job->plan.state != NULL) job->plan.work->destroy(memory, job->plan.state);
  tm_memory_free(memory, job->usage, job->inventory->device_count * sizeof *job->usage);
  tm_memory_free(memory, job->chunks, job->chunk_count * sizeof *job->chunks);
  tm_memory_free(memory, job->notes, MOST_NOTES * sizeof *job->notes);
  tm_arena_deinit(&job->arena);
  tm_condition_deinit(&job->ended);
  tm_mutex_deinit(&job->lock);
  tm_memory_free(memory, job, sizeof *job);
}

static tm_job *make(tm_memory *memory, tm_inventory *inventory, const tm_job_plan *plan) {
  tm_job *job = tm_memory_calloc(memory, 1, sizeof *job);
  if (job == NULL) return NULL;
  job->memory = memory;
  job->inventory = inventory;
  tm_arena_init(&job->arena, memory);
  if (tm_mutex_init(&job->lock) != TM_OK || tm_condition_init(&job->ended) != TM_OK) {
    tm_memory_free(memory, job, sizeof *job);
    return NULL;
  }
  job->usage = tm_memory_calloc(memory, inventory->device_count, sizeof *job->usage);
  job->notes = tm_memory_calloc(memory, MOST_NOTES, sizeof *job->notes);
  if (job->usage == NULL || job->notes == NULL) {
    free_job(job);
    return NULL;
  }
  job->plan = *plan;
  return job;
}

tm_status tm_job_start(tm_memory *memory, tm_inventory *inventory, const tm_job_plan *plan, tm_job **out_job, tm_error *error) {
  tm_job *job = make(memory, inventory, plan);
  if (job == NULL) {
    plan->work->destroy(memory, plan->state);
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a job");
  }
  job->started_ns = tm_now_ns();
  tm_mutex_lock(&job->lock);
  const tm_status status = tm_thread_start(&job->thread, job_thread, job, error);
  if (status == TM_OK) *out_job = job;
  tm_mutex_unlock(&job->lock);
  if (status != TM_OK) free_job(job);
  return status;
}

void tm_job_destroy(tm_job *job) {
  if (job == NULL) return;
  tm_job_cancel(job);
  tm_thread_join(&job->thread);
  free_job(job);
}

tm_status tm_job_wait(tm_job *job, uint64_t timeout_ns, tm_error *error) {
  const uint64_t now = tm_now_ns();
  const uint64_t deadline = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
  tm_mutex_lock(&job->lock);
  while (!job->has_ended && (timeout_ns == UINT64_MAX || tm_now_ns() < deadline))
    (void)tm_condition_wait(&job->ended, &job->lock, deadline);
  const tm_status status = job->has_ended ? job->status : TM_PENDING;
  if (status != TM_OK && status != TM_PENDING) (void)tm_fail_native(error, status, job->error.native_code, "%s", job->error.text);
  tm_mutex_unlock(&job->lock);
  return status;
}

void tm_job_cancel(tm_job *job) {
  atomic_store(&job->cancelled, 1);
  if (job->plan.work->cancel != NULL) job->plan.work->cancel(job->plan.state);
}

bool tm_job_is_cancelled(const tm_job *job) { return atomic_load_explicit(&job->cancelled, memory_order_relaxed) != 0; }

const _Atomic uint32_t *tm_job_cancel_flag(const tm_job *job) { return &job->cancelled; }

/* ---- progress ---- */

void tm_job_set_totals(tm_job *job, uint64_t bytes, uint64_t items) {
  atomic_store(&job->bytes_total, bytes);
  atomic_store(&job->items_total, items);
}

void tm_job_advance(tm_job *job, uint64_t bytes, uint64_t items) {
  atomic_fetch_add_explicit(&job->bytes_done, bytes, memory_order_release);
  atomic_fetch_add_explicit(&job->items_done, items, memory_order_release);
}

void tm_job_progress(const tm_job *const_job, tm_progress *out_progress) {
  tm_job *job = (tm_job *)(uintptr_t)const_job;         /* for the lock; nothing is changed */
  tm_mutex_lock(&job->lock);
  const bool finished = job->has_ended;
  const uint64_t until = finished ? job->ended_ns : tm_now_ns();
  tm_mutex_unlock(&job->lock);
  /* What is done is read before the totals, so that it is never more than they. */
  const uint64_t bytes_done = atomic_load(&job->bytes_done), items_done = atomic_load(&job->items_done);
  const tm_progress progress = {
    .struct_size = out_progress->struct_size,
    .finished = finished,
    .bytes_done = bytes_done,
    .bytes_total = atomic_load(&job->bytes_total),
    .items_done = items_done,
    .items_total = atomic_load(&job->items_total),
    .elapsed_ns = until - job->started_ns,
  };
  tm_copy_out(out_progress, &progress, sizeof progress);
}

/* ---- rows ---- */

const tm_column *tm_job_columns(const tm_job *job, uint32_t *out_count) {
  *out_count = job->plan.work->column_count;
  return job->plan.work->columns;
}

uint64_t tm_job_row_count(const tm_job *job) { return atomic_load_explicit(&job->row_count, memory_order_acquire); }

/* Under the lock. */
static bool add_chunk(tm_job *job) {
  kept_cell *cells = tm_arena_calloc(&job->arena, (uint64_t)ROWS_PER_CHUNK * job->plan.work->column_count, sizeof *cells);
  row_chunk *grown = cells == NULL ? NULL : tm_memory_grow(job->memory, job->chunks, job->chunk_count, job->chunk_count + 1, sizeof *grown);
  if (grown == NULL) return false;
  job->chunks = grown;
  job->chunks[job->chunk_count++].cells = cells;
  return true;
}

static tm_status no_memory_for_rows(tm_error *error) { return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the results"); }

tm_status tm_job_reserve_rows(tm_job *job, uint64_t count, tm_error *error) {
  bool whole = true;
  for (uint64_t i = 0; whole && i < tm_divide_up(count, ROWS_PER_CHUNK); i++) {
    if (tm_job_is_cancelled(job)) return TM_ERROR_CANCELLED;
    tm_mutex_lock(&job->lock);
    whole = i < job->chunk_count || add_chunk(job);
    tm_mutex_unlock(&job->lock);
  }
  return whole ? TM_OK : no_memory_for_rows(error);
}

static bool keep_cell(tm_job *job, const tm_cell *given, kept_cell *out_cell) {
  out_cell->count = given->defined == 0 ? UNDEFINED : given->count;
  if (given->type == TM_COLUMN_NUMBER) out_cell->value.number = given->number;
  if (given->type == TM_COLUMN_TEXT && given->text != NULL) {
    out_cell->value.text = tm_arena_string(&job->arena, given->text, given->count);
    return out_cell->value.text != NULL;
  }
  if (given->type == TM_COLUMN_SHAPE && given->count != 0) {
    uint64_t *shape = tm_arena_alloc(&job->arena, given->count * sizeof *shape);
    if (shape == NULL) return false;
    memcpy(shape, given->shape, given->count * sizeof *shape);
    out_cell->value.shape = shape;
  }
  return true;
}

static tm_cell show_cell(const kept_cell *kept, uint32_t type) {
  tm_cell cell = { .type = type, .defined = kept->count != UNDEFINED };
  if (cell.defined == 0) return cell;
  cell.count = kept->count;
  if (type == TM_COLUMN_NUMBER) cell.number = kept->value.number;
  if (type == TM_COLUMN_TEXT) cell.text = kept->value.text;
  if (type == TM_COLUMN_SHAPE) cell.shape = kept->value.shape;
  return cell;
}

tm_status tm_job_add_row(tm_job *job, const tm_cell *cells, tm_error *error) {
  const uint32_t columns = job->plan.work->column_count;
  const uint64_t row = atomic_load(&job->row_count);
  tm_mutex_lock(&job->lock);
  bool whole = row / ROWS_PER_CHUNK < job->chunk_count || add_chunk(job);
  for (uint32_t i = 0; whole && i < columns; i++)
    whole = keep_cell(job, &cells[i], &job->chunks[row / ROWS_PER_CHUNK].cells[row % ROWS_PER_CHUNK * columns + i]);
  tm_mutex_unlock(&job->lock);
  if (!whole) return no_memory_for_rows(error);
  atomic_store_explicit(&job->row_count, row + 1, memory_order_release);
  return TM_OK;
}

tm_status tm_job_row(const tm_job *const_job, uint64_t row, tm_cell *out_cells) {
  tm_job *job = (tm_job *)(uintptr_t)const_job;
  if (row >= tm_job_row_count(job)) return TM_END;
  const uint32_t columns = job->plan.work->column_count;
  tm_mutex_lock(&job->lock);
  const kept_cell *kept = &job->chunks[row / ROWS_PER_CHUNK].cells[row % ROWS_PER_CHUNK * columns];
  tm_mutex_unlock(&job->lock);
  for (uint32_t i = 0; i < columns; i++) out_cells[i] = show_cell(&kept[i], job->plan.work->columns[i].type);
  return TM_OK;
}

/* ---- notes and use ---- */

void tm_job_add_note(tm_job *job, const char *text) {
  tm_mutex_lock(&job->lock);
  bool known = false;
  for (uint32_t i = 0; i < job->note_count && !known; i++) known = strcmp(job->notes[i], text) == 0;
  if (!known && job->note_count + 1 < MOST_NOTES) {
    const char *kept = tm_arena_string(&job->arena, text, strlen(text));
    if (kept != NULL) job->notes[job->note_count++] = kept;
  } else if (!known && job->note_count + 1 == MOST_NOTES) {
    job->notes[job->note_count++] = "there were more notes than can be kept";
  }
  tm_mutex_unlock(&job->lock);
}

tm_status tm_job_note(const tm_job *const_job, uint32_t index, const char **out_note) {
  tm_job *job = (tm_job *)(uintptr_t)const_job;
  tm_mutex_lock(&job->lock);
  const bool exists = index < job->note_count;
  if (exists) *out_note = job->notes[index];
  tm_mutex_unlock(&job->lock);
  return exists ? TM_OK : TM_END;
}

void tm_job_count_use(tm_job *job, const tm_run_outcome *outcome, uint64_t bytes) {
  tm_mutex_lock(&job->lock);
  tm_device_usage *usage = &job->usage[outcome->device];
  usage->operation_count++;
  usage->bytes += bytes;
  usage->busy_ns += outcome->measured_ns;
  tm_mutex_unlock(&job->lock);
  if (outcome->retries != 0) tm_job_add_note(job, outcome->note);
}

void tm_job_count_piece(tm_job *job, const tm_run_outcome *outcome, tm_string name) {
  tm_mutex_lock(&job->lock);
  tm_doubted_rows_note(&job->doubted, job->inventory, outcome, name);
  tm_mutex_unlock(&job->lock);
}

tm_status tm_job_device_usage(const tm_job *const_job, uint32_t index, tm_device_usage *out_usage) {
  tm_job *job = (tm_job *)(uintptr_t)const_job;
  tm_status status = TM_END;
  tm_mutex_lock(&job->lock);
  for (uint32_t device = 0; device < job->inventory->device_count && status == TM_END; device++) {
    if (job->usage[device].operation_count == 0) continue;
    if (index-- != 0) continue;
    tm_device_usage usage = job->usage[device];
    usage.device = device;
    usage.device_name = job->inventory->devices[device]->name;
    tm_copy_out(out_usage, &usage, sizeof usage);
    status = TM_OK;
  }
  tm_mutex_unlock(&job->lock);
  return status;
}
