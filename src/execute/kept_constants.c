/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/kept_constants.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "plugin/device.h"

/* Copies in host memory beyond this push the oldest out: without a limit of the application's own they must not grow to
   the size of everything that was ever used. */
#define MOST_HOST_BYTES (UINT64_C(4) << 30)

tm_status tm_kept_init(tm_kept_constants *kept, tm_memory *memory, tm_setup_ledger *setups) {
  memset(kept, 0, sizeof *kept);
  if (tm_mutex_init(&kept->lock) != TM_OK) return TM_ERROR_NO_MEMORY;
  kept->memory = memory;
  kept->setups = setups;
  return TM_OK;
}

uint64_t tm_kept_new_origin(tm_kept_constants *kept) { return atomic_fetch_add(&kept->last_origin, 1) + 1; }

tm_kept_key tm_kept_hash(const void *data, uint64_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, (size_t)bytes);
  return (tm_kept_key){ { hash.low64, hash.high64 } };
}

static bool are_equal(const tm_kept_key *a, const tm_kept_key *b) {
  return a->words[0] == b->words[0] && a->words[1] == b->words[1];
}

static bool is_host(const tm_kept *one) { return one->device == NULL || one->device->is_host_memory; }

static void destroy_copy(tm_kept_constants *kept, const tm_kept *one) {
  if (one->device == NULL) tm_memory_free(kept->memory, one->buffer, one->bytes);
  else tm_device_buffer_destroy(one->device, one->buffer, one->bytes, NULL);
}

/* A list of entries that were unlinked under the lock; devices are called without it. */
static void destroy_list(tm_kept_constants *kept, tm_kept *list) {
  if (list != NULL) atomic_fetch_add(&kept->setups->kept_generation, 1);
  while (list != NULL) {
    tm_kept *one = list;
    list = one->next;
    destroy_copy(kept, one);
    tm_memory_free(kept->memory, one, sizeof *one);
  }
}

static void unlink_into(tm_kept_constants *kept, tm_kept **link, tm_kept **list) {
  tm_kept *one = *link;
  *link = one->next;
  if (is_host(one)) kept->host_bytes -= one->bytes;
  one->next = *list;
  *list = one;
}

/* Under the lock. */
static tm_kept *find(tm_kept_constants *kept, const tm_kept_key *content) {
  for (tm_kept *one = kept->buckets[content->words[0] % TM_KEPT_BUCKETS]; one != NULL; one = one->next)
    if (are_equal(&one->content, content) && (one->device == NULL || tm_device_is_usable(one->device))) {
      one->references++;
      one->last_use = ++kept->clock;
      return one;
    }
  return NULL;
}

static tm_kept_note *note_of(tm_kept_constants *kept, const tm_kept_key *source) {
  return &kept->notes[source->words[0] % TM_KEPT_NOTES];
}

tm_kept *tm_kept_find(tm_kept_constants *kept, const tm_kept_key *source) {
  tm_mutex_lock(&kept->lock);
  const tm_kept_note *note = note_of(kept, source);
  tm_kept *one = are_equal(&note->source, source) ? find(kept, &note->content) : NULL;
  tm_mutex_unlock(&kept->lock);
  return one;
}

static void remember(tm_kept_constants *kept, const tm_kept_key *source, const tm_kept_key *content) {
  if (source != NULL) *note_of(kept, source) = (tm_kept_note){ *source, *content };
}

tm_kept *tm_kept_find_content(tm_kept_constants *kept, const tm_kept_key *content, const tm_kept_key *source) {
  tm_mutex_lock(&kept->lock);
  tm_kept *one = find(kept, content);
  if (one != NULL) remember(kept, source, content);
  tm_mutex_unlock(&kept->lock);
  return one;
}

/* Under the lock. */
static tm_kept **oldest_in_host_memory(tm_kept_constants *kept) {
  tm_kept **oldest = NULL;
  for (uint32_t i = 0; i < TM_KEPT_BUCKETS; i++)
    for (tm_kept **link = &kept->buckets[i]; *link != NULL; link = &(*link)->next)
      if ((*link)->references == 0 && is_host(*link) && (oldest == NULL || (*link)->last_use < (*oldest)->last_use)) oldest = link;
  return oldest;
}

tm_kept *tm_kept_add(tm_kept_constants *kept, const tm_kept *copy, const tm_kept_key *source) {
  tm_kept *fresh = tm_memory_alloc(kept->memory, sizeof *fresh, 0);
  if (fresh == NULL) return NULL;
  tm_kept *dropped = NULL;
  *fresh = *copy;
  fresh->references = 1;
  fresh->origin = tm_kept_new_origin(kept);
  tm_mutex_lock(&kept->lock);
  tm_kept *one = find(kept, &copy->content);
  if (one == NULL) {
    tm_kept **bucket = &kept->buckets[copy->content.words[0] % TM_KEPT_BUCKETS];
    fresh->next = *bucket;
    fresh->last_use = ++kept->clock;
    *bucket = one = fresh;
    if (is_host(fresh)) kept->host_bytes += fresh->bytes;
    fresh = NULL;
  }
  remember(kept, source, &copy->content);
  for (tm_kept **link; kept->host_bytes > MOST_HOST_BYTES && (link = oldest_in_host_memory(kept)) != NULL;)
    unlink_into(kept, link, &dropped);
  tm_mutex_unlock(&kept->lock);
  destroy_list(kept, dropped);
  if (fresh != NULL) {
    destroy_copy(kept, fresh);
    tm_memory_free(kept->memory, fresh, sizeof *fresh);
  }
  return one;
}

void tm_kept_release(tm_kept_constants *kept, tm_kept *one) {
  if (one == NULL) return;
  tm_mutex_lock(&kept->lock);
  one->references--;
  tm_mutex_unlock(&kept->lock);
}

void tm_kept_drop(tm_kept_constants *kept, const tm_device_slot *device) {
  tm_kept *dropped = NULL;
  tm_mutex_lock(&kept->lock);
  for (uint32_t i = 0; i < TM_KEPT_BUCKETS; i++)
    for (tm_kept **link = &kept->buckets[i]; *link != NULL;) {
      if ((*link)->references == 0 && (device == NULL || (*link)->device == device)) unlink_into(kept, link, &dropped);
      else link = &(*link)->next;
    }
  tm_mutex_unlock(&kept->lock);
  destroy_list(kept, dropped);
}

void tm_kept_deinit(tm_kept_constants *kept) {
  if (kept->memory == NULL) return;
  tm_kept_drop(kept, NULL);
  tm_mutex_deinit(&kept->lock);
}
