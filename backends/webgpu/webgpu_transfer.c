/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers through staging buffers: small ones share chunks that are used again and again, large ones get buffers for
 * one use, in parts.  The interface copies whole words, so the bytes of a first or last word that belong to somebody else
 * are kept by a small kernel.
 */
#include <string.h>

#include "webgpu_device.h"
#include "webgpu_kernel.h"
#include "webgpu_shaders.h"

#define PART_BYTES (UINT64_C(64) << 20)
#define MOST_STAGED_BYTES (UINT64_C(256) << 20) /* on their way in buffers for one use; beyond it a queue is full */
#define MOVE_PARAMETERS 4u

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- staging ---- */

/* One that is ready, or a new one; NULL when all are on their way. */
static webgpu_chunk *take_chunk(tm_device *device, int is_read) {
  webgpu_chunk *empty = NULL;
  for (uint32_t i = 0; i < WEBGPU_CHUNKS; ++i) {
    webgpu_chunk *chunk = &device->flight->chunks[i];
    if (chunk->state == WEBGPU_CHUNK_READY && chunk->is_read == (uint32_t)is_read) {
      chunk->state = WEBGPU_CHUNK_IN_USE;
      return chunk;
    }
    if (chunk->state == WEBGPU_CHUNK_NONE && !atomic_load(&chunk->reply.is_asked)) empty = chunk;
  }
  if (empty == NULL) return NULL;
  const wapi_flags usage = is_read ? WAPI_USAGE_MAP_READ | WAPI_USAGE_COPY_DESTINATION
                                   : WAPI_USAGE_MAP_WRITE | WAPI_USAGE_COPY_SOURCE;
  empty->handle = webgpu_scratch(device, usage, WEBGPU_CHUNK_BYTES, !is_read);
  if (empty->handle == NULL) return NULL;
  empty->is_read = (uint32_t)is_read;
  empty->state = WEBGPU_CHUNK_IN_USE;
  return empty;
}

/* Room in the queue's chunk, at a multiple of 4; 0 if there is none. */
static int take_room(tm_device *device, uint32_t index, uint64_t bytes) {
  webgpu_queue *q = &device->queues[index];
  if (q->chunk != NULL && WEBGPU_CHUNK_BYTES - q->chunk_used >= bytes) return 1;
  webgpu_chunk *chunk = take_chunk(device, 0);
  if (chunk == NULL) return 0;
  char *memory = device->api->BufferGetMappedRange(chunk->handle, 0, (size_t)WEBGPU_CHUNK_BYTES);
  if (memory == NULL) {
    device->api->BufferRelease(chunk->handle);
    chunk->handle = NULL;
    chunk->state = WEBGPU_CHUNK_NONE;
    return 0;
  }
  if (q->chunk != NULL) device->api->BufferUnmap(q->chunk->handle);
  chunk->submission = q->open;
  q->chunk = chunk;
  q->chunk_bytes = memory;
  q->chunk_used = 0;
  return 1;
}

/* ---- bytes that are no whole words ---- */

typedef struct move {
  wapi_buffer to, from;
  uint64_t    to_offset, from_offset, bytes;
} move;

/* A buffer for one use with these bytes in it. */
static wapi_buffer filled(tm_device *device, wapi_flags usage, const void *data, uint64_t bytes) {
  const uint64_t size = round_up(bytes, 16);
  wapi_buffer buffer = webgpu_scratch(device, usage, size, 1);
  void *memory = buffer == NULL ? NULL : device->api->BufferGetMappedRange(buffer, 0, (size_t)size);
  if (memory != NULL) memcpy(memory, data, (size_t)bytes);
  if (buffer != NULL) device->api->BufferUnmap(buffer);
  return buffer;
}

static tm_status encode_move_part(tm_device *device, uint32_t index, wapi_compute_pipeline pipeline, const move *m) {
  const uint64_t alignment = device->adapter->limits.offset_alignment;
  const uint64_t to = m->to_offset % alignment, from = m->from_offset % alignment;
  const uint64_t words = (to + m->bytes + 3) / 4 - to / 4, workgroup = device->adapter->limits.workgroup_size;
  const uint32_t parameters[MOVE_PARAMETERS] = { (uint32_t)words, (uint32_t)to, (uint32_t)from, (uint32_t)m->bytes };
  wapi_buffer uniform = filled(device, WAPI_USAGE_UNIFORM, parameters, sizeof parameters);
  if (uniform == NULL) return TM_ERROR_NO_MEMORY;
  const wapi_bind_group_entry entries[] = {
    { .binding = 0, .buffer = uniform, .bytes = sizeof parameters },
    { .binding = 1, .buffer = m->from, .offset = m->from_offset - from, .bytes = round_up(from + m->bytes, 4) },
    { .binding = 2, .buffer = m->to, .offset = m->to_offset - to, .bytes = round_up(to + m->bytes, 4) },
  };
  const wapi_bind_group_descriptor descriptor = { .layout = webgpu_layout_get(device, 1, 1), .entry_count = 3, .entries = entries };
  wapi_bind_group group = device->api->DeviceCreateBindGroup(device->handle, &descriptor);
  wapi_compute_pass pass = webgpu_queue_pass(device, index);
  device->api->ComputePassEncoderSetPipeline(pass, pipeline);
  device->api->ComputePassEncoderSetBindGroup(pass, 0, group, 0, NULL);
  const uint64_t groups = least((words + workgroup - 1) / workgroup, device->adapter->limits.workgroup_count);
  device->api->ComputePassEncoderDispatchWorkgroups(pass, (uint32_t)groups, 1, 1);
  device->api->BindGroupRelease(group);
  device->api->BufferRelease(uniform);
  return TM_OK;
}

/* The two buffers are not the same. */
static tm_status encode_move(tm_device *device, uint32_t index, move m) {
  static const char *const shaders[] = { webgpu_wgsl_move, 0 };
  const webgpu_module_key key = { .shaders = shaders, .prologue = "", .reads = 1, .writes = 1 };
  const webgpu_limits *limits = &device->adapter->limits;
  const uint64_t most = (limits->binding_bytes - limits->offset_alignment) / 4 * 4 - 4;
  wapi_compute_pipeline pipeline = NULL;
  tm_status status = webgpu_pipeline_get(device, &key, "webgpu_move", "run", TM_ERROR_DEVICE_LOST, &pipeline);
  if (status == TM_ERROR_DEVICE_LOST && !atomic_load(&device->trouble->is_lost))
    webgpu_trouble_lose(device->trouble, "the compiler refuses the kernel that moves bytes");
  while (status == TM_OK && m.bytes != 0) {
    move part = m;
    part.bytes = least(m.bytes, most);
    status = encode_move_part(device, index, pipeline, &part);
    m.to_offset += part.bytes;
    m.from_offset += part.bytes;
    m.bytes -= part.bytes;
  }
  return status;
}

/* Bytes of the host that share words with somebody else's; 1 to 6 of them. */
static tm_status encode_edge(tm_device *device, uint32_t index, const tm_transfer *transfer, uint64_t skip, uint64_t bytes) {
  if (bytes == 0) return TM_OK;
  wapi_buffer from = filled(device, WAPI_USAGE_STORAGE, (const char *)transfer->host + skip, bytes);
  if (from == NULL) return TM_ERROR_NO_MEMORY;
  const move edge = { transfer->destination->handle, from, transfer->destination_offset + skip, 0, bytes };
  const tm_status status = encode_move(device, index, edge);
  device->api->BufferRelease(from);
  return status;
}

/* ---- upload ---- */

/* `bytes` whole words at a whole word of the destination. */
static tm_status encode_words(tm_device *device, uint32_t index, const tm_transfer *transfer, uint64_t skip, uint64_t bytes) {
  const char *host = (const char *)transfer->host + skip;
  const uint64_t offset = transfer->destination_offset + skip;
  webgpu_queue *q = &device->queues[index];
  wapi_buffer to = transfer->destination->handle;
  if (bytes == 0) return TM_OK;
  if (bytes <= WEBGPU_CHUNK_BYTES && take_room(device, index, bytes)) {
    memcpy(q->chunk_bytes + q->chunk_used, host, (size_t)bytes);
    wapi_command_encoder encoder = webgpu_queue_encoder(device, index);
    device->api->CommandEncoderCopyBufferToBuffer(encoder, q->chunk->handle, q->chunk_used, to, offset, bytes);
    q->chunk_used += bytes;
    return TM_OK;
  }
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t part = least(bytes - done, PART_BYTES);
    wapi_buffer from = filled(device, WAPI_USAGE_COPY_SOURCE, host + done, part);
    if (from == NULL) return TM_ERROR_NO_MEMORY;
    device->api->CommandEncoderCopyBufferToBuffer(webgpu_queue_encoder(device, index), from, 0, to, offset + done, part);
    device->api->BufferRelease(from);
    device->staged_bytes += part;
    device->flight->submissions[q->open - 1].staged_bytes += part;
    done += part;
  }
  return TM_OK;
}

static tm_status encode_upload(tm_device *device, uint32_t index, const tm_transfer *transfer) {
  const uint64_t begin = transfer->destination_offset, end = begin + transfer->bytes;
  const uint64_t first = round_up(begin, 4), last = end / 4 * 4;
  if (first >= last) return encode_edge(device, index, transfer, 0, transfer->bytes);
  tm_status status = encode_edge(device, index, transfer, 0, first - begin);
  if (status == TM_OK) status = encode_words(device, index, transfer, first - begin, last - first);
  if (status == TM_OK) status = encode_edge(device, index, transfer, last - begin, end - last);
  return status;
}

static int fits(const tm_buffer *buffer, uint64_t offset, uint64_t bytes) {
  return offset <= buffer->bytes && bytes <= buffer->bytes - offset;
}

static int is_known(const tm_transfer *transfer) {
  const char *bytes = (const char *)transfer;
  for (uint64_t i = sizeof *transfer; i < transfer->struct_size; ++i) {
    if (bytes[i] != 0) return 0;
  }
  return 1;
}

typedef tm_status (*encode_fn)(tm_device *device, uint32_t index, const tm_transfer *transfer);

/* What the three transfers share around the work itself. */
static tm_status enqueue(tm_device *device, const tm_transfer *transfer, encode_fn encode, tm_ticket *out_ticket) {
  int encoded = 0;
  native_lock_take(&device->backend->lock);
  tm_status status = webgpu_queue_begin(device, transfer->queue, transfer->waits, transfer->wait_count, &encoded);
  const uint32_t errors = webgpu_error_count(device->trouble);
  if (transfer->bytes == 0) encoded = 0;
  if (status == TM_OK && encoded) status = encode(device, transfer->queue, transfer);
  if (status == TM_OK) webgpu_queue_end(device, transfer->queue, encoded, errors, out_ticket);
  native_lock_give(&device->backend->lock);
  return status;
}

/* A full queue must empty itself: what fills it may not have been started. */
static void start_everything(tm_device *device) {
  native_lock_take(&device->backend->lock);
  for (uint32_t i = 0; i < WEBGPU_QUEUES; ++i) webgpu_queue_submit(device, i);
  webgpu_pump(device);
  native_lock_give(&device->backend->lock);
}

tm_status webgpu_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (!is_known(transfer)) return TM_UNSUPPORTED;
  if (!fits(transfer->destination, transfer->destination_offset, transfer->bytes)) {
    return webgpu_fail(device->backend->host, TM_ERROR_ARGUMENT, "an upload beyond the end of its buffer");
  }
  native_lock_take(&device->backend->lock);
  const int is_full = device->staged_bytes != 0 && transfer->bytes > WEBGPU_CHUNK_BYTES &&
                      device->staged_bytes + transfer->bytes > MOST_STAGED_BYTES;
  native_lock_give(&device->backend->lock);
  const tm_status status = is_full ? TM_BUSY : enqueue(device, transfer, encode_upload, out_ticket);
  if (status == TM_BUSY) start_everything(device);
  return status;
}

/* ---- download ---- */

static webgpu_read *free_read(tm_device *device) {
  for (uint32_t i = 0; i < WEBGPU_READS; ++i) {
    webgpu_read *read = &device->flight->reads[i];
    if (!read->is_used && !atomic_load(&read->reply.is_asked)) return read;
  }
  return NULL;
}

/* A part's staging buffer; a chunk where it fits and one is there. */
static tm_status make_read(tm_device *device, uint32_t index, uint64_t span, webgpu_read **out_read) {
  webgpu_read *read = free_read(device);
  if (read == NULL) return TM_BUSY;
  read->chunk = span <= WEBGPU_CHUNK_BYTES ? take_chunk(device, 1) : NULL;
  read->handle = read->chunk != NULL ? read->chunk->handle
                                     : webgpu_scratch(device, WAPI_USAGE_MAP_READ | WAPI_USAGE_COPY_DESTINATION, span, 0);
  if (read->handle == NULL) return TM_ERROR_NO_MEMORY;
  read->span = span;
  read->submission = device->queues[index].open;
  read->is_used = 1;
  *out_read = read;
  return TM_OK;
}

static void drop_reads(tm_device *device, webgpu_read *const *reads, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (reads[i]->chunk != NULL) reads[i]->chunk->state = WEBGPU_CHUNK_READY;
    else device->api->BufferRelease(reads[i]->handle);
    reads[i]->is_used = 0;
  }
}

static tm_status encode_download(tm_device *device, uint32_t index, const tm_transfer *transfer) {
  const uint64_t begin = transfer->source_offset / 4 * 4, end = round_up(transfer->source_offset + transfer->bytes, 4);
  const uint64_t least_part = round_up((end - begin) / WEBGPU_READS + 1, 4);
  const uint64_t part_bytes = least_part > PART_BYTES ? least_part : PART_BYTES;
  webgpu_read *reads[WEBGPU_READS];
  uint32_t count = 0;
  tm_status status = TM_OK;
  for (uint64_t at = begin; at < end && status == TM_OK; at += part_bytes) {
    status = make_read(device, index, least(end - at, part_bytes), &reads[count]);
    if (status == TM_OK) ++count;
  }
  if (status != TM_OK) {
    drop_reads(device, reads, count);
    return status;
  }
  char *host = transfer->host;
  uint64_t at = begin, left = transfer->bytes;
  for (uint32_t i = 0; i < count; ++i) {
    reads[i]->skip = i == 0 ? transfer->source_offset - begin : 0;
    reads[i]->bytes = least(left, reads[i]->span - reads[i]->skip);
    reads[i]->host = host;
    wapi_command_encoder encoder = webgpu_queue_encoder(device, index);
    device->api->CommandEncoderCopyBufferToBuffer(encoder, transfer->source->handle, at, reads[i]->handle, 0, reads[i]->span);
    host += reads[i]->bytes;
    left -= reads[i]->bytes;
    at += reads[i]->span;
  }
  return TM_OK;
}

tm_status webgpu_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (!is_known(transfer)) return TM_UNSUPPORTED;
  if (!fits(transfer->source, transfer->source_offset, transfer->bytes)) {
    return webgpu_fail(device->backend->host, TM_ERROR_ARGUMENT, "a download beyond the end of its buffer");
  }
  const tm_status status = enqueue(device, transfer, encode_download, out_ticket);
  if (status == TM_BUSY) start_everything(device);
  return status;
}

/* ---- copy ---- */

/* The interface copies whole words, and not within a buffer: there the bytes go through another one. */
static tm_status encode_copy_within(tm_device *device, uint32_t index, const tm_transfer *transfer) {
  const wapi_flags usage = WAPI_USAGE_STORAGE | WAPI_USAGE_COPY_SOURCE | WAPI_USAGE_COPY_DESTINATION;
  const uint64_t shift = transfer->source_offset % 4, span = round_up(shift + transfer->bytes, 4);
  wapi_buffer between = webgpu_scratch(device, usage, span, 0);
  if (between == NULL) return TM_ERROR_NO_MEMORY;
  device->api->CommandEncoderCopyBufferToBuffer(webgpu_queue_encoder(device, index), transfer->source->handle,
                                                transfer->source_offset - shift, between, 0, span);
  const move m = { transfer->destination->handle, between, transfer->destination_offset, shift, transfer->bytes };
  const tm_status status = encode_move(device, index, m);
  device->api->BufferRelease(between);
  return status;
}

static tm_status encode_copy(tm_device *device, uint32_t index, const tm_transfer *transfer) {
  const uint64_t to = transfer->destination_offset, from = transfer->source_offset;
  if (transfer->source == transfer->destination) return encode_copy_within(device, index, transfer);
  const move m = { transfer->destination->handle, transfer->source->handle, to, from, transfer->bytes };
  if ((to | from | transfer->bytes) % 4 != 0) return encode_move(device, index, m);
  device->api->CommandEncoderCopyBufferToBuffer(webgpu_queue_encoder(device, index), m.from, from, m.to, to, m.bytes);
  return TM_OK;
}

tm_status webgpu_copy(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  if (!is_known(transfer)) return TM_UNSUPPORTED;
  if (!fits(transfer->source, transfer->source_offset, transfer->bytes) ||
      !fits(transfer->destination, transfer->destination_offset, transfer->bytes)) {
    return webgpu_fail(device->backend->host, TM_ERROR_ARGUMENT, "a copy beyond the end of a buffer");
  }
  return enqueue(device, transfer, encode_copy, out_ticket);
}
