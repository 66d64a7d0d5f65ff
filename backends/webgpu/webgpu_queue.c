/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of the contract over the one queue of the interface: each has an encoder of its own that is submitted at a flush,
 * a wait, or when it is long.  Submissions of a queue complete in order, and a ticket with its submission.
 */
#include <string.h>

#include "webgpu_device.h"

#define WORK_A_SUBMISSION 64u

static const wapi_label no_label = { .next = NULL };

static webgpu_submission *submission_at(const tm_device *device, uint32_t place_plus_one) {
  return &device->flight->submissions[place_plus_one - 1];
}

/* ---- building a submission ---- */

static uint32_t free_submission(const tm_device *device) {
  for (uint32_t i = 0; i < WEBGPU_SUBMISSIONS; ++i) {
    const webgpu_submission *one = &device->flight->submissions[i];
    if (!one->is_used && !atomic_load(&one->reply.is_asked)) return i + 1;
  }
  return 0;
}

static tm_status open_submission(tm_device *device, uint32_t index) {
  webgpu_queue *q = &device->queues[index];
  if (q->open != 0) return TM_OK;
  uint32_t place = free_submission(device);
  if (place == 0) {
    webgpu_pump(device);
    place = free_submission(device);
  }
  if (place == 0) return TM_BUSY;
  webgpu_submission *one = submission_at(device, place);
  one->first = q->issued + 1;
  one->last = q->issued;
  one->failed = 0;
  one->status = TM_OK;
  one->queue = index;
  one->is_used = 1;
  one->next = 0;
  one->staged_bytes = 0;
  q->encoder = device->api->DeviceCreateCommandEncoder(device->handle, &no_label);
  q->open = place;
  q->work_count = 0;
  return TM_OK;
}

static void end_pass(tm_device *device, webgpu_queue *q) {
  if (q->pass == NULL) return;
  device->api->ComputePassEncoderEnd(q->pass);
  device->api->ComputePassEncoderRelease(q->pass);
  q->pass = NULL;
}

wapi_compute_pass webgpu_queue_pass(tm_device *device, uint32_t index) {
  static const wapi_pass_descriptor plain = { .next = NULL };
  webgpu_queue *q = &device->queues[index];
  if (q->pass == NULL) q->pass = device->api->CommandEncoderBeginComputePass(q->encoder, &plain);
  return q->pass;
}

wapi_command_encoder webgpu_queue_encoder(tm_device *device, uint32_t index) {
  end_pass(device, &device->queues[index]);
  return device->queues[index].encoder;
}

static void note_failure(webgpu_submission *one, uint64_t ticket, tm_status status) {
  if (one->failed != 0) return;
  one->failed = ticket;
  one->status = status;
}

static void ask_for_reads(tm_device *device, uint32_t place) {
  for (uint32_t i = 0; i < WEBGPU_READS; ++i) {
    webgpu_read *read = &device->flight->reads[i];
    if (!read->is_used || read->submission != place) continue;
    const wapi_status_call call = webgpu_call_for(device->flight, &read->reply);
    (void)device->api->BufferMapAsync(read->handle, WAPI_MAP_READ, 0, (size_t)read->span, call);
  }
}

void webgpu_queue_submit(tm_device *device, uint32_t index) {
  webgpu_queue *q = &device->queues[index];
  if (q->open == 0) return;
  webgpu_submission *one = submission_at(device, q->open);
  const uint32_t errors = webgpu_error_count(device->trouble);
  end_pass(device, q);
  if (q->chunk != NULL) device->api->BufferUnmap(q->chunk->handle);
  q->chunk = NULL;
  wapi_command_buffer commands = device->api->CommandEncoderFinish(q->encoder, &no_label);
  device->api->CommandEncoderRelease(q->encoder);
  q->encoder = NULL;
  if (webgpu_error_count(device->trouble) != errors) note_failure(one, one->first, TM_ERROR_INTERNAL);
  if (one->failed == 0) device->api->QueueSubmit(device->native_queue, 1, &commands);
  device->api->CommandBufferRelease(commands);
  const wapi_status_call call = webgpu_call_for(device->flight, &one->reply);
  (void)device->api->QueueOnSubmittedWorkDone(device->native_queue, call);
  ask_for_reads(device, q->open);
  if (webgpu_error_count(device->trouble) != errors) note_failure(one, one->first, TM_ERROR_INTERNAL);
  if (q->newest != 0) submission_at(device, q->newest)->next = q->open;
  else q->oldest = q->open;
  q->newest = q->open;
  q->open = 0;
}

/* ---- one piece of work ---- */

static tm_status check_waits(tm_device *device, uint32_t index, const tm_ticket *waits, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (waits[i].queue >= WEBGPU_QUEUES || waits[i].value > device->queues[waits[i].queue].issued) {
      return webgpu_fail(device->backend->host, TM_ERROR_ARGUMENT, "a wait for a ticket that was not issued");
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    const int is_complete = waits[i].value <= device->queues[waits[i].queue].completed;
    if (waits[i].queue != index && !is_complete) webgpu_queue_submit(device, waits[i].queue);
  }
  return TM_OK;
}

tm_status webgpu_queue_begin(tm_device *device, uint32_t index, const tm_ticket *waits, uint32_t wait_count, int *out_encode) {
  if (index >= WEBGPU_QUEUES) return webgpu_fail(device->backend->host, TM_ERROR_ARGUMENT, "there is no such queue");
  if (atomic_load(&device->trouble->is_lost)) {
    webgpu_pump(device);
    return webgpu_fail_told(device, TM_ERROR_DEVICE_LOST, "the device is lost");
  }
  tm_status status = check_waits(device, index, waits, wait_count);
  if (status != TM_OK) return status;
  webgpu_pump(device);
  *out_encode = device->queues[index].failed == 0;
  return *out_encode ? open_submission(device, index) : TM_OK;
}

/* A ticket without work is complete with what was issued before it. */
static void issue_empty(tm_device *device, webgpu_queue *q) {
  ++q->issued;
  if (q->open != 0) submission_at(device, q->open)->last = q->issued;
  else if (q->newest != 0) submission_at(device, q->newest)->last = q->issued;
  else q->completed = q->issued;
}

void webgpu_queue_end(tm_device *device, uint32_t index, int encoded, uint32_t error_count, tm_ticket *out_ticket) {
  webgpu_queue *q = &device->queues[index];
  if (!encoded) {
    issue_empty(device, q);
  } else {
    webgpu_submission *one = submission_at(device, q->open);
    one->last = ++q->issued;
    if (webgpu_error_count(device->trouble) != error_count) note_failure(one, q->issued, TM_ERROR_INTERNAL);
  }
  *out_ticket = (tm_ticket){ .queue = index, .value = q->issued };
  if (encoded && ++q->work_count >= WORK_A_SUBMISSION) webgpu_queue_submit(device, index);
}

void webgpu_queue_abandon(tm_device *device, uint32_t index) {
  webgpu_queue *q = &device->queues[index];
  if (q->open == 0) return;
  webgpu_submission *one = submission_at(device, q->open);
  end_pass(device, q);
  device->api->CommandEncoderRelease(q->encoder);
  q->encoder = NULL;
  for (uint32_t i = 0; i < WEBGPU_READS; ++i) {
    webgpu_read *read = &device->flight->reads[i];
    if (!read->is_used || read->submission != q->open) continue;
    if (read->chunk != NULL) read->chunk->state = WEBGPU_CHUNK_READY;
    else device->api->BufferRelease(read->handle);
    read->is_used = 0;
  }
  for (uint32_t i = 0; i < WEBGPU_CHUNKS; ++i) {
    webgpu_chunk *chunk = &device->flight->chunks[i];
    if (chunk->state != WEBGPU_CHUNK_IN_USE || chunk->is_read || chunk->submission != q->open) continue;
    device->api->BufferRelease(chunk->handle);  /* mapped or not: a new one is simpler than to find out */
    chunk->handle = NULL;
    chunk->state = WEBGPU_CHUNK_NONE;
  }
  q->chunk = NULL;
  device->staged_bytes -= one->staged_bytes;
  one->is_used = 0;
  q->open = 0;
}

/* ---- what is done ---- */

static int is_done(tm_device *device, uint32_t place) {
  if (atomic_load(&submission_at(device, place)->reply.is_asked)) return 0;
  for (uint32_t i = 0; i < WEBGPU_READS; ++i) {
    const webgpu_read *read = &device->flight->reads[i];
    if (read->is_used && read->submission == place && atomic_load(&read->reply.is_asked)) return 0;
  }
  return 1;
}

/* Host memory is written here and nowhere else. */
static void finish_read(tm_device *device, webgpu_read *read, webgpu_submission *one, int is_lost) {
  const int is_mapped = !is_lost && atomic_load(&read->reply.status) == WAPI_SUCCESS;
  const char *from = is_mapped ? device->api->BufferGetConstMappedRange(read->handle, 0, (size_t)read->span) : NULL;
  if (from != NULL && one->failed == 0) {
    memcpy(read->host, from + read->skip, (size_t)read->bytes);
  } else if (one->failed == 0) {
    note_failure(one, one->first, TM_ERROR_INTERNAL);
  }
  if (is_mapped) device->api->BufferUnmap(read->handle);
  if (read->chunk == NULL) {
    device->api->BufferDestroy(read->handle);
    device->api->BufferRelease(read->handle);
  } else if (is_mapped) {
    read->chunk->state = WEBGPU_CHUNK_READY;
  } else {
    device->api->BufferRelease(read->handle);
    read->chunk->handle = NULL;
    read->chunk->state = WEBGPU_CHUNK_NONE;
  }
  read->is_used = 0;
}

/* What uploads were copied through is mapped again, to be used again. */
static void map_chunks(tm_device *device, uint32_t place) {
  for (uint32_t i = 0; i < WEBGPU_CHUNKS; ++i) {
    webgpu_chunk *chunk = &device->flight->chunks[i];
    if (chunk->state != WEBGPU_CHUNK_IN_USE || chunk->is_read || chunk->submission != place) continue;
    const wapi_status_call call = webgpu_call_for(device->flight, &chunk->reply);
    chunk->state = WEBGPU_CHUNK_MAPPING;
    (void)device->api->BufferMapAsync(chunk->handle, WAPI_MAP_WRITE, 0, (size_t)WEBGPU_CHUNK_BYTES, call);
  }
}

static void retire(tm_device *device, webgpu_queue *q, int is_lost) {
  const uint32_t place = q->oldest;
  webgpu_submission *one = submission_at(device, place);
  if (is_lost) note_failure(one, one->first, TM_ERROR_DEVICE_LOST);
  else if (atomic_load(&one->reply.status) != WAPI_SUCCESS) note_failure(one, one->first, TM_ERROR_INTERNAL);
  for (uint32_t i = 0; i < WEBGPU_READS; ++i) {
    webgpu_read *read = &device->flight->reads[i];
    if (read->is_used && read->submission == place) finish_read(device, read, one, is_lost);
  }
  if (!is_lost) map_chunks(device, place);
  q->completed = one->last;
  if (one->failed != 0 && q->failed == 0) {
    q->failed = one->failed;
    q->status = one->status;
  }
  device->staged_bytes -= one->staged_bytes;
  q->oldest = one->next;
  if (q->oldest == 0) q->newest = 0;
  one->is_used = 0;
}

static void settle_chunks(tm_device *device) {
  for (uint32_t i = 0; i < WEBGPU_CHUNKS; ++i) {
    webgpu_chunk *chunk = &device->flight->chunks[i];
    if (chunk->state != WEBGPU_CHUNK_MAPPING || atomic_load(&chunk->reply.is_asked)) continue;
    chunk->state = WEBGPU_CHUNK_READY;
    if (atomic_load(&chunk->reply.status) == WAPI_SUCCESS) continue;
    device->api->BufferRelease(chunk->handle);
    chunk->handle = NULL;
    chunk->state = WEBGPU_CHUNK_NONE;
  }
}

/* Everything on its way fails; nothing is encoded any more. */
static void lose(tm_device *device) {
  const tm_host *host = device->backend->host;
  for (uint32_t i = 0; i < WEBGPU_QUEUES; ++i) {
    webgpu_queue *q = &device->queues[i];
    webgpu_queue_abandon(device, i);
    while (q->oldest != 0) retire(device, q, 1);
    if (q->failed == 0 && q->completed < q->issued) {
      q->failed = q->completed + 1;
      q->status = TM_ERROR_DEVICE_LOST;
    }
    q->completed = q->issued;
  }
  if (device->is_lost_told) return;
  device->is_lost_told = 1;
  const uint64_t epoch = webgpu_standing_lose(&device->backend->standings[device->index]);
  host->device_event(host->context, device->index, TM_EVENT_DEVICE_LOST, epoch);
}

void webgpu_pump(tm_device *device) {
  webgpu_device_poll(device);
  if (atomic_load(&device->trouble->is_lost)) {
    lose(device);
    return;
  }
  for (uint32_t i = 0; i < WEBGPU_QUEUES; ++i) {
    webgpu_queue *q = &device->queues[i];
    while (q->oldest != 0 && is_done(device, q->oldest)) retire(device, q, 0);
  }
  settle_chunks(device);
}

/* ---- the contract's functions ---- */

tm_status webgpu_flush(tm_device *device, uint32_t index) {
  if (index >= WEBGPU_QUEUES) return TM_OK;
  native_lock_take(&device->backend->lock);
  webgpu_queue_submit(device, index);
  const uint32_t is_lost = atomic_load(&device->trouble->is_lost);
  native_lock_give(&device->backend->lock);
  return is_lost ? TM_ERROR_DEVICE_LOST : TM_OK;
}

static tm_status outcome_of(const webgpu_queue *q, uint64_t value) {
  if (value > q->completed) return TM_PENDING;
  if (value != 0 && value >= q->cancelled_first && value <= q->cancelled_last) return TM_ERROR_CANCELLED;
  if (q->failed == 0 || value < q->failed) return TM_OK;
  return value == q->failed || q->status == TM_ERROR_DEVICE_LOST ? q->status : TM_ERROR_PREDECESSOR;
}

/* The first error among complete tickets, unless one is pending. */
static tm_status outcome_of_all(tm_device *device, const tm_ticket *tickets, uint32_t count) {
  tm_status first = TM_OK;
  for (uint32_t i = 0; i < count; ++i) {
    const tm_status status = outcome_of(&device->queues[tickets[i].queue], tickets[i].value);
    if (status == TM_PENDING) return status;
    if (first == TM_OK) first = status;
  }
  return first;
}

static tm_status begin_wait(tm_device *device, const tm_ticket *tickets, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (tickets[i].queue >= WEBGPU_QUEUES || tickets[i].value > device->queues[tickets[i].queue].issued) {
      return webgpu_fail(device->backend->host, TM_ERROR_ARGUMENT, "a wait for a ticket that was not issued");
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (tickets[i].value > device->queues[tickets[i].queue].completed) webgpu_queue_submit(device, tickets[i].queue);
  }
  return TM_OK;
}

static tm_status say_outcome(tm_device *device, tm_status status) {
  if (status == TM_ERROR_INTERNAL || status == TM_ERROR_DEVICE_LOST) return webgpu_fail_told(device, status, "work failed");
  return status;
}

tm_status webgpu_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  const tm_host *host = device->backend->host;
  const uint64_t begin = host->now_ns(host->context);
  native_lock_take(&device->backend->lock);
  tm_status status = begin_wait(device, tickets, count);
  for (uint32_t i = 0; status == TM_OK; ++i) {
    webgpu_pump(device);
    const tm_status outcome = outcome_of_all(device, tickets, count);
    const int is_over = timeout_ns != TM_WAIT_FOREVER && host->now_ns(host->context) - begin >= timeout_ns;
    if (outcome != TM_PENDING || is_over) {
      status = say_outcome(device, outcome);
      break;
    }
    native_lock_give(&device->backend->lock);
    native_pause(i);
    native_lock_take(&device->backend->lock);
  }
  native_lock_give(&device->backend->lock);
  return status;
}

tm_status webgpu_cancel(tm_device *device, uint32_t index) {
  if (index >= WEBGPU_QUEUES) return TM_OK;
  native_lock_take(&device->backend->lock);
  webgpu_queue *q = &device->queues[index];
  if (q->open != 0) {
    const webgpu_submission *one = submission_at(device, q->open);
    if (q->cancelled_last + 1 != one->first) q->cancelled_first = one->first;
    q->cancelled_last = q->issued;
    webgpu_queue_abandon(device, index);
    if (q->newest != 0) submission_at(device, q->newest)->last = q->issued;
    else q->completed = q->issued;
  }
  webgpu_pump(device);
  const int is_running = q->oldest != 0;
  if (!is_running) q->failed = 0;
  const uint32_t is_lost = atomic_load(&device->trouble->is_lost);
  native_lock_give(&device->backend->lock);
  return is_lost ? TM_ERROR_DEVICE_LOST : is_running ? TM_BUSY : TM_OK;
}
