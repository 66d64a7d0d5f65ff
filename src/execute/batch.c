/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/batch.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "execute/sampled_check.h"
#include "plugin/answer.h"
#include "plugin/device.h"

void tm_batch_init(tm_batch *batch, const tm_runner *runner) {
  memset(batch, 0, sizeof *batch);
  batch->runner = runner;
}

void tm_batch_deinit(tm_batch *batch) {
  tm_batch_clear(batch);
  for (uint32_t i = 0; i < TM_BATCH_AREAS; i++)
    if (batch->areas[i].block.memory != NULL) tm_scratch_give(batch->runner->scratch, batch->areas[i].block);
}

void tm_batch_clear(tm_batch *batch) {
  for (uint32_t i = 0; i < batch->count; i++) tm_placement_release(batch->runner->table, batch->items[i].placement);
  for (uint32_t i = 0; i < TM_BATCH_AREAS; i++) batch->areas[i].bytes = 0;
  batch->count = 0;
}

/* ---- who may join ---- */

/* Where each run by itself is a copy, or a wait. */
static bool gains(const tm_device_slot *device) {
  return !device->is_host_memory || (device->info.flags & TM_DEVICE_SYNCHRONOUS) == 0;
}

bool tm_batch_is_wanted(const tm_inventory *inventory) {
  for (uint32_t i = 0; i < inventory->device_count; i++)
    if (gains(inventory->devices[i]) && tm_device_is_usable(inventory->devices[i])) return true;
  return false;
}

static bool are_plain(const tm_plan_candidate *candidate) {
  const uint32_t count = candidate->operation.input_count + candidate->operation.output_count;
  for (uint32_t i = 0; i < count; i++) {
    const tm_operand *operand = &candidate->operands[i];
    if ((operand->flags & TM_OPERAND_CONTIGUOUS) == 0 || operand->byte_count == 0) return false;
    if (operand->format >= TM_FORMAT_PRIVATE) return false;
  }
  return true;
}

static bool may_join(const tm_batch *batch, tm_plan_candidate *candidate) {
  const tm_device_slot *device = candidate->device;
  if (!gains(device) || !tm_device_is_usable(device) || (batch->count != 0 && device != batch->device)) return false;
  if (batch->runner->denied != NULL && batch->runner->denied[device->index] != 0) return false;
  const bool is_ready = atomic_load_explicit(&candidate->is_prepared, memory_order_acquire) && tm_trial_is_over(candidate->trial);
  return is_ready && candidate->lowering == NULL && atomic_load(&candidate->lacks) == 0 && are_plain(candidate);
}

/* ---- places ---- */

static bool is_power(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

/* Granules that are no powers of two are left to single runs.  0: that is so. */
static uint64_t unit_of(const tm_device_slot *device, uint64_t alignment) {
  const tm_memory_space *space = &device->memories[0];
  const uint64_t own = tm_max_u64(alignment, space->alignment);
  if (!is_power(space->offset_granule) || !is_power(space->store_granule) || !is_power(tm_max_u64(1, own))) return 0;
  return tm_max_u64(tm_max_u64(TM_BEST_ALIGNMENT, own), tm_max_u64(space->offset_granule, space->store_granule));
}

/* One block serves all devices that the batch has turned to: none is particular beyond this. */
#define LARGEST_ALIGNMENT (UINT64_C(1) << 16)

/* Whole units, so that none writes into its neighbour. */
static bool reserve(tm_batch_area *area, uint64_t unit, uint64_t bytes, uint64_t *out_offset) {
  uint64_t padded;
  if (unit == 0 || unit > LARGEST_ALIGNMENT || !tm_checked_round_up(area->bytes, unit, out_offset)) return false;
  if (!tm_checked_round_up(bytes, unit, &padded) || padded > TM_BATCH_BYTES || *out_offset > TM_BATCH_BYTES - padded) return false;
  area->bytes = *out_offset + padded;
  return true;
}

static tm_batch_area *area_of(tm_batch *batch, const tm_operation *operation, uint32_t operand) {
  return &batch->areas[operand < operation->input_count ? TM_BATCH_INPUTS : TM_BATCH_OUTPUTS];
}

static bool place(tm_batch *batch, tm_batch_item *item) {
  const tm_plan_candidate *candidate = item->candidate;
  const uint32_t count = candidate->operation.input_count + candidate->operation.output_count;
  for (uint32_t i = 0; i < count; i++) {
    const tm_operand *operand = &candidate->operands[i];
    const uint64_t unit = unit_of(candidate->device, operand->alignment);
    if (!reserve(area_of(batch, &candidate->operation, i), unit, operand->byte_count, &item->offsets[i])) return false;
  }
  const uint64_t bytes = candidate->answer.workspace_bytes;
  return bytes == 0 || reserve(&batch->areas[TM_BATCH_WORKSPACE], unit_of(candidate->device, 1), bytes, &item->offsets[count]);
}

static bool has_memory(tm_batch *batch, tm_batch_area *area, uint64_t alignment) {
  if (area->bytes == 0 || area->block.memory != NULL) return true;
  area->block = tm_scratch_take_aligned(batch->runner->scratch, TM_BATCH_BYTES, alignment);
  area->host = area->block.memory == NULL ? NULL : tm_scratch_start(&area->block, alignment);
  return area->host != NULL;
}

static bool has_room(tm_batch *batch, tm_batch_item *item) {
  uint64_t before[TM_BATCH_AREAS];
  for (uint32_t i = 0; i < TM_BATCH_AREAS; i++) before[i] = batch->areas[i].bytes;
  bool fits = place(batch, item);
  for (uint32_t i = 0; i < TM_BATCH_WORKSPACE && fits; i++) fits = has_memory(batch, &batch->areas[i], LARGEST_ALIGNMENT);
  if (fits && item->candidate->device->is_host_memory)
    fits = has_memory(batch, &batch->areas[TM_BATCH_WORKSPACE], LARGEST_ALIGNMENT);
  for (uint32_t i = 0; i < TM_BATCH_AREAS && !fits; i++) batch->areas[i].bytes = before[i];
  return fits;
}

bool tm_batch_add(tm_batch *batch, const tm_request *request) {
  tm_error unheard = TM_ERROR_INIT;
  tm_placement *placement = NULL;
  if (batch->count == TM_BATCH_MOST) return false;
  if (tm_placement_acquire(batch->runner->table, request, batch->runner->cancelled, &placement, &unheard) != TM_OK) return false;
  const uint32_t index = tm_placement_peek(placement);
  tm_batch_item *item = &batch->items[batch->count];
  if (index < placement->candidate_count) {
    *item = (tm_batch_item){ .placement = placement, .candidate = &placement->candidates[index] };
    if (may_join(batch, item->candidate) && has_room(batch, item)) {
      batch->device = item->candidate->device;
      batch->count++;
      return true;
    }
  }
  tm_placement_release(batch->runner->table, placement);
  return false;
}

void tm_batch_put(tm_batch *batch, uint32_t index, void *const *pointers) {
  const tm_batch_item *item = &batch->items[index];
  for (uint32_t i = 0; i < item->candidate->operation.input_count; i++)
    memcpy(batch->areas[TM_BATCH_INPUTS].host + item->offsets[i], pointers[i], item->candidate->operands[i].byte_count);
}

/* ---- running ---- */

typedef struct flight {
  tm_batch      *batch;
  tm_device_use *use;
  tm_error      *error;
  uint64_t       tickets[TM_BATCH_MOST];
  tm_ticket      last;
  uint64_t       first_value;
  uint64_t       expected_ns;
  uint32_t       launched;
  uint32_t       blamed;
} flight;

static tm_status make_buffers(const flight *f) {
  for (uint32_t i = 0; i < TM_BATCH_AREAS; i++) {
    tm_batch_area *area = &f->batch->areas[i];
    area->buffer = f->batch->device->is_host_memory ? (tm_buffer *)area->host : NULL;
    if (f->batch->device->is_host_memory || area->bytes == 0) continue;
    TM_TRY(tm_device_buffer_create(f->use, area->bytes, &area->buffer, f->error));
  }
  return TM_OK;
}

static void note_ticket(flight *f, const tm_ticket *ticket) {
  if (ticket->value == 0) return;
  if (f->first_value == 0) f->first_value = ticket->value;
  f->last = *ticket;
}

static tm_status upload(flight *f) {
  const tm_batch_area *area = &f->batch->areas[TM_BATCH_INPUTS];
  tm_ticket ticket = { 0, 0, 0 };
  if (f->batch->device->is_host_memory || area->bytes == 0) return TM_OK;
  const tm_transfer what = { .struct_size = sizeof what, .queue = f->use->queue, .destination = area->buffer, .host = area->host,
                             .bytes = area->bytes };
  f->expected_ns += area->bytes;
  TM_TRY(tm_device_enqueue_upload(f->use, &what, &ticket, f->error));
  note_ticket(f, &ticket);
  return TM_OK;
}

static tm_status launch(flight *f, uint32_t index) {
  const tm_batch_item *item = &f->batch->items[index];
  const tm_plan_candidate *candidate = item->candidate;
  uint32_t count = candidate->operation.input_count + candidate->operation.output_count;
  tm_binding bindings[TM_MAX_OPERANDS + 1];
  for (uint32_t i = 0; i < count; i++)
    bindings[i] = (tm_binding){ area_of(f->batch, &candidate->operation, i)->buffer, item->offsets[i], candidate->operands[i].byte_count };
  const uint64_t workspace_bytes = candidate->answer.workspace_bytes;
  if (workspace_bytes != 0) {
    bindings[count] = (tm_binding){ f->batch->areas[TM_BATCH_WORKSPACE].buffer, item->offsets[count], workspace_bytes };
    count++;
  }
  const tm_launch what = { .struct_size = sizeof what, .queue = f->use->queue, .kernel = atomic_load(&candidate->kernel),
                           .bindings = bindings, .binding_count = count };
  tm_ticket ticket = { 0, 0, 0 };
  f->use->trial = candidate->trial;
  f->use->expected_ns = candidate->answer.cost_ns;
  f->expected_ns += candidate->answer.cost_ns;
  f->blamed = index;
  TM_TRY(tm_device_enqueue(f->use, &what, &ticket, f->error));
  f->tickets[index] = ticket.value;
  note_ticket(f, &ticket);
  f->launched++;
  return TM_OK;
}

static tm_status finish(flight *f, tm_error *error) {
  uint64_t failed = 0;
  const tm_status status = tm_device_finish(f->use, &f->last, f->first_value, f->expected_ns, &failed, error);
  for (uint32_t i = 0; i < f->launched && failed != 0; i++)
    if (f->tickets[i] == failed) f->blamed = i;
  f->last.value = 0;
  return status;
}

static tm_status run_all(flight *f) {
  TM_TRY(upload(f));
  for (uint32_t i = 0; i < f->batch->count; i++) TM_TRY(launch(f, i));
  TM_TRY(finish(f, f->error));
  const tm_batch_area *outputs = &f->batch->areas[TM_BATCH_OUTPUTS];
  if (f->batch->device->is_host_memory || outputs->bytes == 0) return TM_OK;
  return tm_device_download(f->use, outputs->buffer, 0, outputs->host, outputs->bytes, f->error);
}

/* Work that was left behind may still use its memory. */
static void leave_memory(const flight *f) {
  for (uint32_t i = 0; i < TM_BATCH_AREAS; i++) {
    tm_batch_area *area = &f->batch->areas[i];
    tm_device_memory_free(f->batch->device, area->block.memory, area->block.bytes);
    area->block = (tm_scratch_block){ NULL, 0 };
    area->host = NULL;
  }
}

static void drop_buffers(const flight *f) {
  tm_device_slot *device = f->batch->device;
  for (uint32_t i = 0; i < TM_BATCH_AREAS; i++) {
    tm_batch_area *area = &f->batch->areas[i];
    if (!device->is_host_memory) tm_device_buffer_destroy(device, area->buffer, area->bytes, f->use->cancelled);
    area->buffer = NULL;
  }
}

/* Lack of memory is no fault: a run by itself needs less. */
static void note_failure(const flight *f, tm_status status) {
  char note[TM_RUN_NOTE_BYTES];
  if (status == TM_ERROR_NO_MEMORY || status == TM_BUSY || status == TM_ERROR_CANCELLED) return;
  tm_runner_note_failure(f->batch->runner, f->batch->items[f->blamed].candidate, status, f->error, note);
}

static bool was_learned(const tm_batch *batch, uint32_t index) {
  for (uint32_t i = 0; i < index; i++)
    if (batch->items[i].candidate == batch->items[index].candidate) return true;
  return false;
}

/* What a run of it took as its part of them all, if that is news; 0: it is not. */
static uint64_t news_of(tm_plan_candidate *candidate, uint64_t expected_ns, double slower) {
  const double part_ns = (double)expected_ns * slower;
  const uint64_t taken_ns = part_ns < (double)TM_LARGEST_COST_NS ? (uint64_t)part_ns : TM_LARGEST_COST_NS;
  uint64_t alone_ns = atomic_load(&candidate->alone_ns);
  if (alone_ns == 0 && slower <= 1) return 0;
  if (alone_ns == 0) atomic_store(&candidate->alone_ns, alone_ns = expected_ns);
  return tm_max_u64(taken_ns, alone_ns);
}

/* Together they should take less than one by one, and that says little of either alone.  If they take more, the device has become
   slower than it was known to be, by as much for each kind of run as for all; until they take less again. */
static void learn(const tm_batch *batch) {
  uint64_t expected_ns = 0;
  for (uint32_t i = 0; i < batch->count; i++)
    expected_ns = tm_cost_add(expected_ns, tm_placement_expect(batch->items[i].placement, batch->items[i].candidate));
  if (expected_ns == 0) return;
  const double slower = (double)batch->taken_ns / (double)expected_ns;
  for (uint32_t i = 0; i < batch->count; i++) {
    const tm_batch_item *item = &batch->items[i];
    if (was_learned(batch, i)) continue;
    const uint64_t taken_ns = news_of(item->candidate, tm_placement_expect(item->placement, item->candidate), slower);
    if (taken_ns <= item->candidate->copy_ns) continue;
    tm_placement_learn(batch->runner->table, item->placement, item->candidate, taken_ns - item->candidate->copy_ns, 1);
  }
}

static void *place_of(const tm_batch *batch, const tm_batch_item *item, uint32_t operand) {
  const tm_operation *operation = &item->candidate->operation;
  const uint32_t area = operand < operation->input_count ? TM_BATCH_INPUTS : TM_BATCH_OUTPUTS;
  return batch->areas[area].host + item->offsets[operand];
}

/* One wrong result and none of them is to be used. */
static tm_status check_results(flight *f) {
  const tm_batch *batch = f->batch;
  for (uint32_t i = 0; i < batch->count; i++) {
    const tm_batch_item *item = &batch->items[i];
    const tm_operation *operation = &item->candidate->operation;
    void *pointers[TM_MAX_OPERANDS];
    for (uint32_t o = 0; o < operation->input_count + operation->output_count; o++) pointers[o] = place_of(batch, item, o);
    f->blamed = i;
    const tm_checked_run run = { item->candidate, operation, pointers, batch->taken_ns / batch->count, 1 };
    TM_TRY(tm_sampled_check(batch->runner, &run, f->error));
  }
  return TM_OK;
}

tm_status tm_batch_run(tm_batch *batch, tm_error *error) {
  tm_device_use use = tm_device_use_begin(batch->device, batch->runner->cancelled);
  use.has_own_operands = true;
  use.trial = batch->items[0].candidate->trial;
  const tm_clock *clock = &batch->device->backend->inventory->clock;
  const uint64_t begin = tm_clock_now(clock);
  flight f = { .batch = batch, .use = &use, .error = error };
  tm_status status = make_buffers(&f);
  if (status == TM_OK) status = run_all(&f);
  tm_error unheard = TM_ERROR_INIT;     /* what went before a launch that was refused ends first */
  if (status != TM_OK && f.last.value != 0 && !use.is_abandoned && !use.queue_is_left) (void)finish(&f, &unheard);
  batch->taken_ns = tm_clock_since(clock, begin);
  atomic_fetch_add_explicit(&batch->device->launch_count, f.launched, memory_order_relaxed);
  if (use.is_abandoned || use.queue_is_left) leave_memory(&f);
  drop_buffers(&f);
  tm_device_use_end(&use);
  if (status == TM_OK) status = check_results(&f);
  if (status == TM_OK) learn(batch);
  else note_failure(&f, status);
  return status;
}

/* ---- afterwards ---- */

const void *tm_batch_result(const tm_batch *batch, uint32_t index, uint32_t output) {
  const tm_batch_item *item = &batch->items[index];
  return batch->areas[TM_BATCH_OUTPUTS].host + item->offsets[item->candidate->operation.input_count + output];
}

void tm_batch_outcome(const tm_batch *batch, uint32_t index, tm_run_outcome *out_outcome) {
  const tm_batch_item *item = &batch->items[index];
  *out_outcome = (tm_run_outcome){ .device = batch->device->index, .level = item->candidate->answer.level,
                                   .numerics = item->candidate->answer.numerics,
                                   .expected_ns = tm_placement_expect(item->placement, item->candidate),
                                   .measured_ns = batch->taken_ns / batch->count,
                                   .trial = item->candidate->trial };
}
