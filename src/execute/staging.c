/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/staging.h"

#include "base/checked.h"
#include "base/error.h"
#include "tensor/shape.h"

/* An operand in the device's memory: the bytes that it touches, from the lowest on, placed so that its first element lies
   on the device's granule although negative strides reach below it. */
typedef struct staged {
  tm_buffer *buffer;
  uint64_t   buffer_bytes;
  uint64_t   touched_bytes;
  uint64_t   start;             /* offset of the lowest byte */
  uint64_t   first;             /* offset of the first element */
  char      *host;              /* address of the lowest byte */
  bool       is_resident;       /* it was there before, and stays; or it is another operand's */
} staged;

typedef struct stage {
  const tm_launch_site *site;
  tm_device_slot *device;
  staged          operands[TM_MAX_OPERANDS + 1];        /* the last may be the workspace */
  uint32_t        count;
  tm_device_use  *use;
  const tm_clock *clock;
  tm_copy_times   copies;
} stage;

static tm_status make_buffer(stage *s, uint32_t index, uint64_t bytes, tm_error *error) {
  const tm_memory_space *space = &s->device->memories[0];
  staged *one = &s->operands[index];
  uint64_t padded;
  if (!tm_checked_round_up(tm_max_u64(1, bytes), space->store_granule, &padded))
    return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: a buffer of %llu bytes", s->device->name, (unsigned long long)bytes);
  TM_TRY(tm_device_buffer_create(s->use, padded, &one->buffer, error));
  one->buffer_bytes = padded;
  s->count = index + 1;
  return TM_OK;
}

/* The smallest common multiple; both come from checks that bound them to 2^20. */
static uint64_t common_multiple(uint64_t a, uint64_t b) {
  uint64_t x = a, y = b;
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

/* The device keeps the alignment that was promised for the operand, so its first element lies on all three units. */
static tm_status place(stage *s, uint32_t index, uint64_t below, tm_error *error) {
  const tm_memory_space *space = &s->device->memories[0];
  staged *one = &s->operands[index];
  const uint64_t alignment = tm_max_u64(1, s->site->operation->operands[index].alignment);
  const uint64_t unit = common_multiple(common_multiple(space->offset_granule, space->store_granule), alignment);
  uint64_t end;
  if (!tm_checked_round_up(below, unit, &one->first) || !tm_checked_add(one->first - below, one->touched_bytes, &end))
    return tm_fail(error, TM_ERROR_NO_MEMORY, "%s: a tensor larger than 64 bits can count", s->device->name);
  one->start = one->first - below;
  return make_buffer(s, index, end, error);
}

static bool is_output(const stage *s, uint32_t index) { return index >= s->site->operation->input_count; }

/* An output with gaps is uploaded too: what lies between its elements belongs to somebody else. */
static bool must_upload(const stage *s, uint32_t index) {
  return !is_output(s, index) || (s->site->operation->operands[index].flags & TM_OPERAND_CONTIGUOUS) == 0;
}

static bool use_resident(stage *s, uint32_t index) {
  const tm_resident *resident = s->site->residents == NULL ? NULL : &s->site->residents[index];
  if (resident == NULL || resident->buffer == NULL) return false;
  s->operands[index] = (staged){ .buffer = resident->buffer, .buffer_bytes = resident->bytes, .is_resident = true };
  s->count = index + 1;
  return true;
}

/* An output that the kernel expects where an input lies: the buffer is the input's. */
static bool share_place(stage *s, uint32_t index, void *pointer) {
  const uint32_t inputs = s->site->operation->input_count;
  const uint32_t input = index < inputs ? TM_NO_OPERAND : tm_launch_place_of(s->site, index - inputs);
  if (input == TM_NO_OPERAND) return false;
  s->operands[index] = s->operands[input];
  s->operands[index].is_resident = true;
  s->operands[index].host = (char *)pointer - tm_operand_bytes_below(&s->site->operation->operands[index]);
  s->count = index + 1;
  return true;
}

static tm_status stage_operand(stage *s, uint32_t index, void *pointer, tm_error *error) {
  if (use_resident(s, index) || share_place(s, index, pointer)) return TM_OK;
  const tm_operand *operand = &s->site->operation->operands[index];
  staged *one = &s->operands[index];
  const uint64_t below = tm_operand_bytes_below(operand);
  one->touched_bytes = operand->byte_count;
  one->host = (char *)pointer - below;
  TM_TRY(place(s, index, below, error));
  if (!must_upload(s, index) || operand->byte_count == 0) return TM_OK;
  const uint64_t begin = tm_clock_now(s->clock);
  TM_TRY(tm_device_upload(s->use, one->buffer, one->start, one->host, operand->byte_count, error));
  s->copies.in_ns += tm_clock_since(s->clock, begin);
  s->copies.in_bytes += operand->byte_count;
  return TM_OK;
}

static tm_status stage_all(stage *s, void *const *pointers, tm_error *error) {
  const tm_operation *operation = s->site->operation;
  const uint32_t count = operation->input_count + operation->output_count;
  for (uint32_t i = 0; i < count; i++) TM_TRY(stage_operand(s, i, pointers[i], error));
  if (s->site->workspace_bytes != 0) TM_TRY(make_buffer(s, count, s->site->workspace_bytes, error));
  return TM_OK;
}

static tm_status collect(stage *s, tm_error *error) {
  const tm_operation *operation = s->site->operation;
  const uint64_t begin = tm_clock_now(s->clock);
  for (uint32_t i = operation->input_count; i < operation->input_count + operation->output_count; i++) {
    const staged *one = &s->operands[i];
    if (one->touched_bytes == 0) continue;
    TM_TRY(tm_device_download(s->use, one->buffer, one->start, one->host, one->touched_bytes, error));
    s->copies.out_bytes += one->touched_bytes;
  }
  s->copies.out_ns += tm_clock_since(s->clock, begin);
  return TM_OK;
}

static tm_status run(stage *s, tm_kernel *kernel, void *const *pointers, tm_error *error) {
  TM_TRY(stage_all(s, pointers, error));
  tm_binding bindings[TM_MAX_OPERANDS + 1];
  for (uint32_t i = 0; i < s->count; i++) {
    const staged *one = &s->operands[i];
    bindings[i] = (tm_binding){ one->buffer, one->first, one->buffer_bytes - one->first };
  }
  const tm_status status = tm_device_run(s->use, kernel, bindings, s->count, error);
  s->use->is_apart = s->use->is_abandoned;      /* copies from the caller's memory are done, none to it was asked for */
  return status != TM_OK ? status : collect(s, error);
}

tm_status tm_staging_run(const tm_launch_site *site, tm_device_use *use, tm_copy_times *out_copies, tm_error *error) {
  stage s = { .site = site, .device = site->device, .use = use, .clock = &site->device->backend->inventory->clock };
  const tm_status status = run(&s, site->kernel, site->pointers, error);
  for (uint32_t i = 0; i < s.count; i++)
    if (!s.operands[i].is_resident) tm_device_buffer_destroy(s.device, s.operands[i].buffer, s.operands[i].buffer_bytes, use->cancelled);
  if (status == TM_OK) *out_copies = s.copies;
  return status;
}
