/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"

/* Variances of logarithms to base 2, in 2^-12: what is known is about another state of the machine, or another build. */
#define SOFT_DOUBT 341u         /* (0.2 / ln 2)^2 */
#define HARD_DOUBT 4178u        /* (0.7 / ln 2)^2 */
#define MUCH_LEARNED 4096u      /* measurements */

static const tm_identity host_memory = TM_HOST_MEMORY;

/* ---- which device ---- */

static void describe(const tm_profile *profile, const tm_device_slot *device, tm_profile_device *out) {
  memset(out, 0, sizeof *out);
  tm_profile_device_set(out->backend, device->backend->name);
  tm_profile_device_set(out->build_id, device->backend->build_id);
  tm_profile_device_set(out->driver, device->driver_version);
  memcpy(out->uuid, device->uuid_text, sizeof out->uuid);
  out->abi = TM_ABI_MAJOR << 16 | TM_ABI_MINOR;
  out->cost_model_id = device->info.cost_model_id;
  out->thread_count = profile->thread_count;
  out->memory_bytes = device->memories[0].total_bytes;
}

/* UINT32_MAX: it is about something else. */
static uint32_t doubt_of(const tm_profile_device *here, const tm_profile_device *known) {
  if (strcmp(here->backend, known->backend) != 0 || strcmp(here->uuid, known->uuid) != 0) return UINT32_MAX;
  if (here->cost_model_id != known->cost_model_id) return UINT32_MAX;
  if (here->abi != known->abi || strcmp(here->build_id, known->build_id) != 0) return HARD_DOUBT;
  const bool is_equal = strcmp(here->driver, known->driver) == 0 && here->thread_count == known->thread_count &&
                        here->memory_bytes == known->memory_bytes;
  return is_equal ? 0 : SOFT_DOUBT;
}

static bool is_memory_here(const tm_inventory *inventory, const tm_identity *identity) {
  if (memcmp(identity, &host_memory, sizeof host_memory) == 0) return true;
  for (uint32_t i = 0; i < inventory->device_count; i++) {
    const tm_device_slot *device = inventory->devices[i];
    if (memcmp(identity, &device->memories[0].identity, sizeof *identity) == 0) return true;
    if (memcmp(identity, &device->info.uuid, sizeof *identity) == 0) return true;
  }
  return false;
}

/* ---- reading ---- */

/* Of whom records speak. */
typedef struct fit {
  uint64_t fingerprint;
  uint32_t owner;               /* device or link; TM_NO_LINK: nobody here */
  uint32_t doubt;
} fit;

typedef struct recall {
  tm_profile *profile;
  fit        *fits;             /* TM_MOST_PROFILE_OWNERS */
  uint32_t    fit_count;
  uint64_t    entry_count;      /* that fit somebody */
} recall;

static void add_fit(recall *r, uint64_t fingerprint, uint32_t owner, uint32_t doubt) {
  for (uint32_t i = 0; i < r->fit_count; i++)
    if (r->fits[i].fingerprint == fingerprint) return;
  if (r->fit_count < TM_MOST_PROFILE_OWNERS) r->fits[r->fit_count++] = (fit){ fingerprint, owner, doubt };
}

static void take_device(recall *r, const tm_profile_record *record) {
  const tm_inventory *inventory = r->profile->inventory;
  tm_profile_device here;
  for (uint32_t i = 0; i < inventory->device_count; i++) {
    describe(r->profile, inventory->devices[i], &here);
    const uint32_t doubt = doubt_of(&here, &record->device);
    if (doubt != UINT32_MAX) add_fit(r, record->fingerprint, i, doubt);
  }
}

static void take_link(recall *r, const tm_profile_record *record) {
  const tm_correction_link *link = &record->link;
  if (!is_memory_here(r->profile->inventory, &link->from) || !is_memory_here(r->profile->inventory, &link->to)) return;
  add_fit(r, record->fingerprint, tm_correction_link_of(r->profile->correction, &link->from, &link->to), 0);
}

static bool is_of_link(uint32_t kind) { return kind >= TM_CORRECTION_LATENCY && kind <= TM_CORRECTION_COPY; }

static void take_entry(recall *r, const tm_profile_record *record) {
  for (uint32_t i = 0; i < r->fit_count; i++) {
    const fit *f = &r->fits[i];
    if (f->fingerprint != record->fingerprint || f->owner == TM_NO_LINK) continue;
    tm_correction_entry entry = record->entry;
    entry.owner = f->owner;
    tm_correction_merge(r->profile->correction, &entry, entry.node.is_reset, f->doubt);
    r->entry_count++;
    return;
  }
}

static void take(void *context, const tm_profile_record *record) {
  recall *r = context;
  if (record->kind == TM_PROFILE_DEVICE) take_device(r, record);
  else if (record->kind == TM_PROFILE_LINK) take_link(r, record);
  else if (record->kind == TM_PROFILE_ENTRY) take_entry(r, record);
}

static bool recall_init(recall *r, tm_profile *profile) {
  *r = (recall){ .profile = profile };
  r->fits = tm_memory_calloc(profile->memory, TM_MOST_PROFILE_OWNERS, sizeof *r->fits);
  return r->fits != NULL;
}

static void recall_deinit(recall *r) { tm_memory_free(r->profile->memory, r->fits, TM_MOST_PROFILE_OWNERS * sizeof *r->fits); }

static tm_status read_known(tm_profile *profile) {
  recall r;
  if (!recall_init(&r, profile)) return TM_ERROR_NO_MEMORY;
  tm_profile_file_read(&profile->file, take, &r);
  recall_deinit(&r);
  if (r.entry_count != 0) tm_correction_promote(profile->correction);
  return TM_OK;
}

/* ---- life ---- */

tm_status tm_profile_init(tm_profile *profile, tm_memory *memory, tm_inventory *inventory, tm_correction *correction,
                          const char *state_folder) {
  memset(profile, 0, sizeof *profile);
  if (tm_mutex_init(&profile->lock) != TM_OK) return TM_ERROR_NO_MEMORY;
  profile->memory = memory;
  profile->inventory = inventory;
  profile->correction = correction;
  profile->thread_count = tm_pool_lane_count(atomic_load(&inventory->pool));
  profile->file.memory = memory;
  profile->file.log = inventory->log;
  if (state_folder == NULL) return TM_OK;
  profile->folder = tm_memory_alloc(memory, strlen(state_folder) + 1, 0);
  if (profile->folder == NULL) return TM_ERROR_NO_MEMORY;
  memcpy(profile->folder, state_folder, strlen(state_folder) + 1);
  profile->file.folder = profile->folder;
  return read_known(profile);
}

void tm_profile_deinit(tm_profile *profile) {
  if (profile->memory == NULL) return;
  (void)tm_profile_save(profile, NULL);
  if (profile->folder != NULL) tm_memory_free(profile->memory, profile->folder, strlen(profile->folder) + 1);
  tm_mutex_deinit(&profile->lock);
}

/* ---- writing ---- */

/* What is fresh, as lines. */
typedef struct harvest {
  tm_profile          *profile;
  tm_correction_entry *entries;
  uint32_t             count;
  uint32_t             room;
  char                *text;
  uint64_t             used;
} harvest;

/* Each may be the only one of its owner. */
static uint64_t text_room(const harvest *h) { return 2 * (uint64_t)h->room * TM_PROFILE_LINE_BYTES; }

static bool harvest_init(harvest *h, tm_profile *profile) {
  *h = (harvest){ .profile = profile, .room = tm_correction_count(profile->correction) };
  h->entries = tm_memory_calloc(profile->memory, h->room, sizeof *h->entries);
  h->text = h->entries == NULL ? NULL : tm_memory_alloc(profile->memory, text_room(h), 0);
  return h->text != NULL;
}

static void print_owner(harvest *h, const tm_correction_entry *entry, tm_profile_record *record) {
  memset(record, 0, sizeof *record);
  record->kind = is_of_link(entry->kind) ? TM_PROFILE_LINK : TM_PROFILE_DEVICE;
  if (record->kind == TM_PROFILE_LINK) {
    (void)tm_correction_link_at(h->profile->correction, entry->owner, &record->link);
    record->fingerprint = tm_profile_link_fingerprint(&record->link);
  } else {
    describe(h->profile, h->profile->inventory->devices[entry->owner], &record->device);
    record->fingerprint = tm_profile_device_fingerprint(&record->device);
  }
  h->used += tm_profile_record_print(record, h->text + h->used);
}

/* By owner, so that each is named once. */
static int by_owner(const void *a, const void *b) {
  const tm_correction_entry *x = a, *y = b;
  const bool x_is_link = is_of_link(x->kind), y_is_link = is_of_link(y->kind);
  if (x_is_link != y_is_link) return x_is_link ? 1 : -1;
  return (x->owner > y->owner) - (x->owner < y->owner);
}

static void print_all(harvest *h) {
  tm_profile_record owner = { .kind = TM_PROFILE_HEADER };
  qsort(h->entries, h->count, sizeof *h->entries, by_owner);
  for (uint32_t i = 0; i < h->count; i++) {
    if (i == 0 || by_owner(&h->entries[i], &h->entries[i - 1]) != 0) print_owner(h, &h->entries[i], &owner);
    const tm_profile_record record = { .kind = TM_PROFILE_ENTRY, .fingerprint = owner.fingerprint, .entry = h->entries[i] };
    h->used += tm_profile_record_print(&record, h->text + h->used);
  }
}

static tm_status write_fresh(harvest *h, tm_error *error) {
  for (uint32_t i = 0; i < h->room; i++)
    if (tm_correction_take_fresh(h->profile->correction, i, &h->entries[h->count])) h->count++;
  if (h->count == 0) return TM_OK;
  print_all(h);
  const tm_status status = tm_profile_file_append(&h->profile->file, h->text, h->used, error);
  for (uint32_t i = 0; status != TM_OK && i < h->count; i++) tm_correction_give_back(h->profile->correction, &h->entries[i]);
  return status;
}

tm_status tm_profile_save(tm_profile *profile, tm_error *error) {
  harvest h;
  tm_error own = TM_ERROR_INIT;
  if (profile->folder == NULL || atomic_load(&profile->correction->fresh_samples) == 0) return TM_OK;
  tm_mutex_lock(&profile->lock);
  const bool has_room = harvest_init(&h, profile);
  tm_status status = has_room ? write_fresh(&h, &own) : tm_fail(&own, TM_ERROR_NO_MEMORY, "no memory to write what was learned");
  tm_memory_free(profile->memory, h.entries, h.room * sizeof *h.entries);
  tm_memory_free(profile->memory, h.text, text_room(&h));
  tm_mutex_unlock(&profile->lock);
  atomic_store(&profile->unwritten, status == TM_OK ? 0 : atomic_load(&profile->correction->fresh_samples));
  if (status == TM_OK) return TM_OK;
  if (!atomic_exchange(&profile->is_loss_said, true))
    tm_log_write(&profile->file.log, TM_LOG_WARNING, "what was learned of devices is not kept for the next start: %s", own.text);
  return tm_fail(error, status, "%s", own.text);
}

/* After one that failed as much again has to be learned first, or each run would wait for a disk that takes nothing. */
void tm_profile_save_if_due(tm_profile *profile) {
  const uint64_t fresh = atomic_load_explicit(&profile->correction->fresh_samples, memory_order_relaxed);
  const uint64_t unwritten = atomic_load_explicit(&profile->unwritten, memory_order_relaxed);
  if (profile->folder != NULL && fresh >= unwritten && fresh - unwritten >= MUCH_LEARNED) (void)tm_profile_save(profile, NULL);
}

/* ---- for people ---- */

typedef struct wanted {
  const tm_profile *profile;
  const char       *name;       /* NULL: all */
  uint64_t          count;
} wanted;

static bool is_meant(const wanted *w, const tm_device_slot *device) {
  return w->name == NULL || strcmp(device->name, w->name) == 0 || strcmp(device->backend->name, w->name) == 0;
}

static bool keep_owner(void *context, const tm_profile_owner *owner) {
  wanted *w = context;
  if (w->name == NULL) return false;
  if (owner->is_link || !owner->is_named) return true;
  bool is_dropped = strcmp(owner->device.backend, w->name) == 0;
  for (uint32_t i = 0; i < w->profile->inventory->device_count; i++) {
    const tm_device_slot *device = w->profile->inventory->devices[i];
    is_dropped |= strcmp(device->uuid_text, owner->device.uuid) == 0 && is_meant(w, device);
  }
  w->count += is_dropped;
  return !is_dropped;
}

static bool is_known_name(const wanted *w) {
  for (uint32_t i = 0; i < w->profile->inventory->device_count; i++)
    if (is_meant(w, w->profile->inventory->devices[i])) return true;
  return w->name == NULL || w->count != 0;
}

tm_status tm_profile_reset(tm_profile *profile, const char *name, uint64_t *out_count, tm_error *error) {
  wanted w = { profile, name, 0 };
  uint64_t count = 0;
  tm_mutex_lock(&profile->lock);
  const tm_status status = profile->folder == NULL ? TM_OK : tm_profile_file_compact(&profile->file, keep_owner, &w, error);
  for (uint32_t i = 0; status == TM_OK && name != NULL && i < profile->inventory->device_count; i++)
    if (is_meant(&w, profile->inventory->devices[i])) count += tm_correction_forget(profile->correction, i);
  if (status == TM_OK && name == NULL) count = tm_correction_forget(profile->correction, TM_ANY_DEVICE);
  tm_mutex_unlock(&profile->lock);
  if (status != TM_OK) return status;
  if (!is_known_name(&w)) return tm_fail(error, TM_ERROR_NOT_FOUND, "there is no device or backend %.100s, and nothing is known of one", name);
  *out_count = tm_max_u64(count, w.count);
  return TM_OK;
}

tm_status tm_profile_export(tm_profile *profile, const char *path, tm_error *error) {
  TM_TRY(tm_profile_save(profile, error));
  return tm_profile_file_export(&profile->file, path, error);
}

/* Lines of what was read, behind each other. */
typedef struct line_writer {
  char    *text;
  uint64_t used;
} line_writer;

static void write_line(void *context, const tm_profile_record *record) {
  line_writer *writer = context;
  writer->used += tm_profile_record_print(record, writer->text + writer->used);
}

static tm_status append_news(tm_profile *profile, tm_profile_merge *merge, tm_error *error) {
  const uint64_t room = ((uint64_t)merge->owner_count + merge->entries.count) * TM_PROFILE_LINE_BYTES;
  line_writer writer = { tm_memory_alloc(profile->memory, room, 0), 0 };
  if (writer.text == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a profile");
  tm_profile_merge_visit(merge, write_line, &writer);
  const tm_status status = tm_profile_file_append(&profile->file, writer.text, writer.used, error);
  tm_memory_free(profile->memory, writer.text, room);
  return status;
}

/* What this process knows, where nothing is kept. */
static void note_known(tm_profile *profile, tm_profile_merge *known) {
  tm_correction_entry entry;
  for (uint32_t i = 0; tm_correction_at(profile->correction, i, &entry); i++) {
    tm_profile_record record = { .kind = TM_PROFILE_DEVICE };
    if (is_of_link(entry.kind)) {
      (void)tm_correction_link_at(profile->correction, entry.owner, &record.link);
      record.fingerprint = tm_profile_link_fingerprint(&record.link);
    } else {
      describe(profile, profile->inventory->devices[entry.owner], &record.device);
      record.fingerprint = tm_profile_device_fingerprint(&record.device);
    }
    record.kind = TM_PROFILE_ENTRY;
    record.entry = entry;
    record.entry.node.fresh = entry.node.live;
    tm_profile_merge_take(known, &record);
  }
}

static tm_status keep_news(tm_profile *profile, tm_profile_merge *merge, tm_error *error) {
  tm_profile_merge known;
  if (tm_profile_merge_init(&known, profile->memory) != TM_OK) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a profile");
  if (profile->folder != NULL) tm_profile_file_read(&profile->file, tm_profile_merge_take, &known);
  else note_known(profile, &known);
  tm_profile_merge_keep_news(merge, &known);
  tm_profile_merge_deinit(&known);
  return TM_OK;
}

static tm_status import_file(tm_profile *profile, tm_profile_merge *merge, const char *path, tm_error *error) {
  tm_profile_flaws flaws = { false, 0, 0 };
  TM_TRY(tm_profile_file_load(profile->memory, path, tm_profile_merge_take, merge, &flaws, error));
  if (flaws.damaged_count != 0)
    tm_log_write(&profile->file.log, TM_LOG_WARNING, "%s: %llu damaged line%s ignored", path, (unsigned long long)flaws.damaged_count,
                 flaws.damaged_count == 1 ? " is" : "s are");
  TM_TRY(tm_profile_save(profile, error));
  TM_TRY(keep_news(profile, merge, error));
  return profile->folder == NULL ? TM_OK : append_news(profile, merge, error);
}

tm_status tm_profile_import(tm_profile *profile, const char *path, uint64_t *out_count, tm_error *error) {
  tm_profile_merge merge;
  recall r;
  if (!recall_init(&r, profile)) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a profile");
  tm_status status = tm_profile_merge_init(&merge, profile->memory);
  if (status == TM_OK) {
    status = import_file(profile, &merge, path, error);
    if (status == TM_OK) tm_profile_merge_visit(&merge, take, &r);
    *out_count = merge.entries.count;
    tm_profile_merge_deinit(&merge);
  }
  recall_deinit(&r);
  if (status == TM_OK) tm_correction_promote(profile->correction);
  return status;
}
