/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/health.h"

#include <stdio.h>
#include <string.h>

#include "plugin/crash_marks.h"

/* So many different broken kinds of work and the device itself is not to be trusted. */
#define MOST_BROKEN_KINDS 4u

/* ---- records ---- */

static bool is_in_force(const tm_health_record *record) { return !atomic_load(&record->is_forgiven); }

/* A record without formats is about all. */
static bool covers(const tm_health_record *record, const tm_device_slot *device, const tm_work_kind *kind) {
  if (record->device != device || !is_in_force(record)) return false;
  return tm_work_kind_equal(&record->kind, kind) || (record->kind.op == kind->op && record->kind.format_count == 0);
}

static tm_health_record *find(const tm_health *health, const tm_device_slot *device, const tm_work_kind *kind) {
  for (tm_health_record *record = health->records; record != NULL; record = record->next)
    if (covers(record, device, kind)) return record;
  return NULL;
}

/* Under the lock, so nothing that is kept for speed is given back for it: that calls backends. */
static tm_health_record *add(tm_health *health, tm_device_slot *device, const tm_work_kind *kind, const char *reason) {
  tm_health_record *record = tm_memory_try_alloc(health->memory, sizeof *record, 0);
  if (record == NULL) return NULL;
  memset(record, 0, sizeof *record);
  record->device = device;
  record->kind = *kind;
  tm_work_kind_formats(kind, record->formats, sizeof record->formats);
  snprintf(record->reason, sizeof record->reason, "%.*s", (int)sizeof record->reason - 1, reason);
  for (char *c = record->reason; *c != '\0'; c++)
    if (*c == '\n' || *c == '\t') *c = ' ';
  tm_health_record **link = &health->records;
  while (*link != NULL) link = &(*link)->next;
  *link = record;
  return record;
}

static bool is_untrusted(const tm_health *health, const tm_device_slot *device) {
  uint32_t count = 0;
  for (const tm_health_record *record = health->records; record != NULL; record = record->next) {
    if (record->device != device || !is_in_force(record)) continue;
    if (record->kind.op == TM_OP_NONE || record->kind.op == TM_WORK_SHUTDOWN) return true;
    count++;
  }
  return count >= MOST_BROKEN_KINDS;
}

/* ---- on disk ---- */

static bool keep_all(void *context, const tm_health_entry *entry) {
  (void)context, (void)entry;
  return true;
}

/* Not under the lock: other processes may have the file. */
static void remember(tm_health *health, const tm_device_slot *device, const tm_work_kind *kind, const char *reason) {
  if (health->folder == NULL) return;
  const tm_health_entry entry = { device->backend->name, device->backend->build_id, device->uuid_text, *kind, 1, reason, false };
  tm_health_file_update(&health->file, keep_all, NULL, &entry);
}

static const tm_backend_slot *find_backend(const tm_inventory *inventory, const char *name) {
  for (uint32_t i = 0; i < inventory->backend_count; i++)
    if (inventory->backends[i]->device_count != 0 && strcmp(inventory->backends[i]->name, name) == 0) return inventory->backends[i];
  return NULL;
}

/* What never counted is a suspicion, which is only kept. */
static void take_entry(tm_health *health, tm_device_slot *device, const tm_health_entry *entry) {
  if (entry->count == 0) {
    health->has_suspects = true;
    return;
  }
  tm_health_record *record = find(health, device, &entry->kind);
  if (record == NULL) record = add(health, device, &entry->kind, entry->reason);
  if (record == NULL) return;
  record->is_remembered = true;
  atomic_fetch_add(&record->count, entry->count);
  if (entry->kind.op == TM_WORK_SHUTDOWN) atomic_store(&device->backend->is_kept_up, true);
}

/* Keeps what is about this build, or about nobody here; another build may have mended it. */
static bool recall_one(void *context, const tm_health_entry *entry) {
  tm_health *health = context;
  const tm_backend_slot *backend = find_backend(health->inventory, entry->backend);
  if (backend == NULL) return true;
  if (strcmp(backend->build_id, entry->build_id) != 0) return false;
  for (uint32_t i = 0; i < backend->device_count; i++) {
    tm_device_slot *device = health->inventory->devices[backend->first_device + i];
    if (strcmp(device->uuid_text, entry->uuid) == 0) take_entry(health, device, entry);
  }
  return true;
}

/* It may have been ended from outside, so the first time only makes it suspect. */
static void take_mark(void *context, const tm_found_mark *mark) {
  tm_health *health = context;
  char reason[TM_HEALTH_REASON_BYTES];
  snprintf(reason, sizeof reason, "processes ended while they were in %.32s: they crashed, or were ended from outside", mark->call);
  const tm_health_entry entry = { mark->backend, mark->build_id, mark->uuid, mark->kind, 1, reason, true };
  tm_health_file_update(&health->file, keep_all, NULL, &entry);
}

static void recall(tm_health *health) {
  tm_crash_marks_collect(health->memory, health->folder, take_mark, health);
  tm_health_file_update(&health->file, recall_one, health, NULL);
  for (uint32_t i = 0; i < health->inventory->device_count; i++)
    if (is_untrusted(health, health->inventory->devices[i])) tm_inventory_retire(health->inventory->devices[i], TM_DEVICE_QUARANTINED);
}

/* ---- life ---- */

static void record_kind(tm_health *health, tm_device_slot *device, const tm_work_kind *kind, const char *reason);

static void take_stuck(void *context, tm_device_slot *device, uint32_t op, const char *what) {
  const tm_work_kind kind = { .op = op };
  record_kind(context, device, &kind, what);
}

tm_status tm_health_init(tm_health *health, tm_memory *memory, tm_inventory *inventory, const char *state_folder) {
  memset(health, 0, sizeof *health);
  if (tm_mutex_init(&health->lock) != TM_OK) return TM_ERROR_NO_MEMORY;
  health->memory = memory;
  health->inventory = inventory;
  inventory->stuck = take_stuck;
  inventory->stuck_context = health;
  if (state_folder == NULL) return TM_OK;
  health->folder = tm_memory_alloc(memory, strlen(state_folder) + 1, 0);
  if (health->folder == NULL) return TM_ERROR_NO_MEMORY;
  memcpy(health->folder, state_folder, strlen(state_folder) + 1);
  health->file = (tm_health_file){ .memory = memory, .log = inventory->log, .folder = health->folder };
  recall(health);
  return TM_OK;
}

static bool keep_guilty(void *context, const tm_health_entry *entry) {
  const tm_health *health = context;
  const tm_backend_slot *backend = entry->count != 0 ? NULL : find_backend(health->inventory, entry->backend);
  for (uint32_t i = 0; backend != NULL && i < backend->device_count; i++) {
    tm_device_slot *device = health->inventory->devices[backend->first_device + i];
    if (strcmp(device->uuid_text, entry->uuid) == 0 && tm_trial_is_passed(device, &entry->kind)) return false;
  }
  return true;
}

void tm_health_acquit(tm_health *health) {
  if (health->has_suspects) tm_health_file_update(&health->file, keep_guilty, health, NULL);
}

void tm_health_deinit(tm_health *health) {
  if (health->memory == NULL) return;
  while (health->records != NULL) {
    tm_health_record *record = health->records;
    health->records = record->next;
    tm_memory_free(health->memory, record, sizeof *record);
  }
  if (health->folder != NULL) tm_memory_free(health->memory, health->folder, strlen(health->folder) + 1);
  tm_mutex_deinit(&health->lock);
}

/* ---- use ---- */

static void record_kind(tm_health *health, tm_device_slot *device, const tm_work_kind *kind, const char *reason) {
  atomic_fetch_add(&device->violation_count, 1);
  tm_mutex_lock(&health->lock);
  tm_health_record *record = find(health, device, kind);
  if (record == NULL) record = add(health, device, kind, reason);
  if (record != NULL) atomic_fetch_add(&record->count, 1);
  const bool untrusted = is_untrusted(health, device);
  tm_mutex_unlock(&health->lock);
  if (record != NULL) remember(health, device, kind, record->reason);
  atomic_fetch_add(&device->backend->inventory->generation, 1);
  if (untrusted) tm_inventory_retire(device, TM_DEVICE_QUARANTINED);
}

void tm_health_record_violation(tm_health *health, tm_device_slot *device, const tm_operation *operation, const char *reason) {
  const tm_work_kind kind = tm_work_kind_of(operation);
  record_kind(health, device, &kind, reason);
}

bool tm_health_is_quarantined(tm_health *health, const tm_device_slot *device, const tm_operation *operation,
                              char reason[TM_HEALTH_REASON_BYTES]) {
  const tm_work_kind kind = tm_work_kind_of(operation);
  tm_mutex_lock(&health->lock);
  const tm_health_record *record = find(health, device, &kind);
  if (record != NULL) memcpy(reason, record->reason, TM_HEALTH_REASON_BYTES);
  tm_mutex_unlock(&health->lock);
  return record != NULL;
}

const tm_health_record *tm_health_at(tm_health *health, uint32_t index) {
  tm_mutex_lock(&health->lock);
  const tm_health_record *record = health->records;
  for (; record != NULL; record = record->next)
    if (is_in_force(record) && index-- == 0) break;
  tm_mutex_unlock(&health->lock);
  return record;
}

uint64_t tm_health_count_of(tm_health *health, const tm_device_slot *device) {
  uint64_t count = 0;
  tm_mutex_lock(&health->lock);
  for (const tm_health_record *record = health->records; record != NULL; record = record->next)
    if (record->device == device && is_in_force(record)) count += atomic_load(&record->count);
  tm_mutex_unlock(&health->lock);
  return count;
}

const char *tm_health_device_reason(tm_health *health, const tm_device_slot *device) {
  const tm_work_kind itself = { .op = TM_OP_NONE }, at_the_end = { .op = TM_WORK_SHUTDOWN };
  tm_mutex_lock(&health->lock);
  const tm_health_record *record = find(health, device, &itself);
  if (record == NULL) record = find(health, device, &at_the_end);
  tm_mutex_unlock(&health->lock);
  return record == NULL ? NULL : record->reason;
}

/* ---- forgiving ---- */

typedef struct pardon {
  const tm_health *health;
  const char      *name;
  uint32_t         count;
} pardon;

static bool is_meant(const tm_device_slot *device, const char *name) {
  return strcmp(device->name, name) == 0 || strcmp(device->backend->name, name) == 0;
}

static bool is_device_of(const tm_inventory *inventory, const char *uuid, const char *name) {
  for (uint32_t i = 0; i < inventory->device_count; i++)
    if (strcmp(inventory->devices[i]->uuid_text, uuid) == 0 && strcmp(inventory->devices[i]->name, name) == 0) return true;
  return false;
}

static bool keep_unpardoned(void *context, const tm_health_entry *entry) {
  pardon *p = context;
  if (strcmp(entry->backend, p->name) != 0 && !is_device_of(p->health->inventory, entry->uuid, p->name)) return true;
  p->count += entry->count != 0;
  return false;
}

static void make_ready(tm_device_slot *device) {
  uint32_t quarantined = TM_DEVICE_QUARANTINED;
  if (atomic_load(&device->is_stuck)) return;
  (void)atomic_compare_exchange_strong(&device->state, &quarantined, TM_DEVICE_READY);
}

uint32_t tm_health_forgive(tm_health *health, const char *name) {
  pardon p = { health, name, 0 };
  uint32_t here = 0;
  if (health->folder != NULL) tm_health_file_update(&health->file, keep_unpardoned, &p, NULL);
  tm_mutex_lock(&health->lock);
  for (tm_health_record *record = health->records; record != NULL; record = record->next) {
    if (!is_in_force(record) || !is_meant(record->device, name)) continue;
    atomic_store(&record->is_forgiven, true);
    if (record->kind.op == TM_WORK_SHUTDOWN) atomic_store(&record->device->backend->is_kept_up, false);
    here++;
  }
  for (uint32_t i = 0; i < health->inventory->device_count; i++)
    if (is_meant(health->inventory->devices[i], name)) make_ready(health->inventory->devices[i]);
  tm_mutex_unlock(&health->lock);
  atomic_fetch_add(&health->inventory->generation, 1);
  return p.count > here ? p.count : here;
}
