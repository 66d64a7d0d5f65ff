/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/device_identity.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/content_hash.h"
#include "base/error.h"
#include "base/file.h"

#define PIECE_BYTES (UINT64_C(1) << 18)
#define LONGEST_NOTE 1024

static const tm_identity nothing = { { 0 } };

static bool is_same(const tm_identity *a, const tm_identity *b) { return memcmp(a, b, sizeof *a) == 0; }

/* ---- made up ---- */

static bool read_content(tm_memory *memory, const tm_file *file, tm_content_hash *hash) {
  void *piece = tm_memory_try_alloc(memory, PIECE_BYTES, 0);
  const uint64_t size_bytes = tm_file_size(file);
  bool good = piece != NULL;
  for (uint64_t at = 0; good && at < size_bytes; at += PIECE_BYTES) {
    const uint64_t bytes = tm_min_u64(PIECE_BYTES, size_bytes - at);
    good = tm_file_read(file, at, piece, bytes, NULL) == TM_OK;
    if (good) tm_content_hash_add(hash, at / PIECE_BYTES, piece, bytes);
  }
  tm_memory_free(memory, piece, PIECE_BYTES);
  return good;
}

/* Read once for all devices; a built-in has no file, and its build tells it. */
static void find_content(tm_backend_slot *slot) {
  tm_file *file = NULL;
  tm_content_hash hash = { 0, 0 };
  if (slot->has_content || slot->path == NULL) return;
  if (tm_file_open(slot->inventory->memory, slot->path, 0, &file, NULL) != TM_OK) return;
  if (read_content(slot->inventory->memory, file, &hash)) {
    memcpy(slot->content.bytes, &hash, sizeof hash);
    slot->has_content = true;
  }
  tm_file_close(file);
}

/* The text alone may be short, as pieces have to be longer. */
static tm_identity identity_of(const tm_identity *seed, const char *text, uint32_t number) {
  tm_content_hash hash = { 0, 0 };
  tm_identity identity;
  unsigned char head[sizeof *seed + sizeof number];
  memcpy(head, seed, sizeof *seed);
  memcpy(head + sizeof *seed, &number, sizeof number);
  tm_content_hash_add(&hash, 0, head, sizeof head);
  tm_content_hash_add(&hash, 1, text, strlen(text));
  memcpy(identity.bytes, &hash, sizeof identity.bytes);
  return identity;
}

void tm_device_identity_print(const tm_identity *identity, char out_text[33]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 16; i++) {
    out_text[2 * i] = digits[identity->bytes[i] >> 4];
    out_text[2 * i + 1] = digits[identity->bytes[i] & 15];
  }
  out_text[32] = '\0';
}

void tm_device_identity_take(tm_device_slot *device, const tm_identity *own) {
  tm_backend_slot *slot = device->backend;
  device->told_uuid = device->own_uuid = device->info.uuid;
  if (is_same(&device->told_uuid, &nothing) && own != NULL) device->own_uuid = *own;
  if (is_same(&device->own_uuid, &nothing)) {
    find_content(slot);
    device->own_uuid = identity_of(&slot->content, slot->build_id, device->index_in_backend);
  }
  device->info.uuid = device->own_uuid;
  tm_device_identity_print(&device->info.uuid, device->uuid_text);
}

/* ---- kept apart ---- */

static tm_status note_twin(tm_device_slot *device, const tm_device_slot *other, tm_error *error) {
  tm_backend_slot *slot = device->backend;
  char text[LONGEST_NOTE];
  const int length = snprintf(text, sizeof text, "%.700s%s%s says that it is the same device as %s (one uuid); they are kept apart",
                              slot->note, slot->note[0] != '\0' ? "; " : "", device->name, other->name);
  const char *kept = tm_arena_string(&slot->inventory->arena, text, (uint64_t)length);
  if (kept == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of devices");
  slot->note = kept;
  return TM_OK;
}

/* One a backend is enough: it may have hundreds. */
static bool is_noted(const tm_inventory *inventory, const tm_device_slot *device) {
  for (uint32_t i = device->backend->first_device; i < device->index; i++)
    if (inventory->devices[i]->is_twin) return true;
  return false;
}

static tm_device_slot *find_twin(const tm_inventory *inventory, const tm_device_slot *device) {
  for (uint32_t i = 0; i < inventory->device_count; i++) {
    tm_device_slot *other = inventory->devices[i];
    if (other != device && is_same(&other->own_uuid, &device->own_uuid)) return other;
  }
  return NULL;
}

/* All of them get another one, whoever came first: which one that was says nothing. */
tm_status tm_device_identity_part(tm_inventory *inventory, tm_error *error) {
  for (uint32_t i = 0; i < inventory->device_count; i++) {
    tm_device_slot *device = inventory->devices[i];
    const tm_device_slot *other = find_twin(inventory, device);
    if (other == NULL) continue;
    const bool is_told = !is_same(&device->told_uuid, &nothing) && !is_noted(inventory, device);
    device->is_twin = true;
    device->info.uuid = identity_of(&device->own_uuid, device->backend->origin, device->index_in_backend);
    tm_device_identity_print(&device->info.uuid, device->uuid_text);
    if (is_told) TM_TRY(note_twin(device, other, error));
  }
  return TM_OK;
}

/* ---- which comes first ---- */

static int compare_numbers(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int compare_memories(const tm_memory_space *a, const tm_memory_space *b) {
  const uint64_t of_a[] = { a->flags, a->total_bytes, a->largest_buffer_bytes, a->alignment, a->offset_granule, a->store_granule };
  const uint64_t of_b[] = { b->flags, b->total_bytes, b->largest_buffer_bytes, b->alignment, b->offset_granule, b->store_granule };
  for (size_t i = 0; i < sizeof of_a / sizeof of_a[0]; i++)
    if (of_a[i] != of_b[i]) return compare_numbers(of_a[i], of_b[i]);
  return memcmp(&a->identity, &b->identity, sizeof a->identity);
}

static int compare_facts(const tm_device_slot *a, const tm_device_slot *b) {
  const uint64_t of_a[] = { a->index_in_backend, a->info.flags, a->info.queue_count, a->info.cost_model_id };
  const uint64_t of_b[] = { b->index_in_backend, b->info.flags, b->info.queue_count, b->info.cost_model_id };
  for (size_t i = 0; i < sizeof of_a / sizeof of_a[0]; i++)
    if (of_a[i] != of_b[i]) return compare_numbers(of_a[i], of_b[i]);
  const int by_resource = memcmp(&a->info.resource, &b->info.resource, sizeof a->info.resource);
  return by_resource != 0 ? by_resource : compare_memories(&a->memories[0], &b->memories[0]);
}

int tm_device_identity_compare(const tm_device_slot *a, const tm_device_slot *b) {
  const int by_word = memcmp(&a->told_uuid, &b->told_uuid, sizeof a->told_uuid);
  if (by_word != 0) return by_word;
  const int by_build = strcmp(a->backend->build_id, b->backend->build_id);
  if (by_build != 0) return by_build;
  const int by_facts = compare_facts(a, b);
  return by_facts != 0 ? by_facts : memcmp(&a->info.uuid, &b->info.uuid, sizeof a->info.uuid);
}
