/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/enumeration.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "plugin/device_listing.h"

#define MAGIC "backend record 2"
#define MOST_OPTIONS 256u

/* ---- writing ---- */

static void write_string(tm_field_writer *writer, tm_string string) { tm_field_write(writer, string.data, string.length); }

static void write_memory(const tm_memory_space *space, tm_field_writer *writer) {
  tm_field_write_number(writer, space->flags);
  tm_field_write(writer, space->identity.bytes, sizeof space->identity.bytes);
  write_string(writer, space->name);
  tm_field_write_number(writer, space->total_bytes);
  tm_field_write_number(writer, space->largest_buffer_bytes);
  tm_field_write_number(writer, space->largest_binding_bytes);
  tm_field_write_number(writer, space->alignment);
  tm_field_write_number(writer, space->offset_granule);
  tm_field_write_number(writer, space->store_granule);
}

static void write_device(const tm_device_slot *device, bool with_moment, tm_field_writer *writer) {
  const tm_device_info *info = &device->info;
  tm_field_write_number(writer, info->flags);
  tm_field_write(writer, device->told_uuid.bytes, sizeof device->told_uuid.bytes);
  tm_field_write(writer, device->own_uuid.bytes, sizeof device->own_uuid.bytes);
  tm_field_write(writer, info->resource.bytes, sizeof info->resource.bytes);
  tm_field_write_text(writer, device->description);
  tm_field_write_text(writer, device->driver_version);
  tm_field_write_number(writer, with_moment ? info->epoch : 0);
  tm_field_write_number(writer, with_moment ? info->open_ns : 0);
  tm_field_write_number(writer, info->cost_model_id);
  tm_field_write_number(writer, info->queue_count);
  tm_field_write_number(writer, info->memory_count);
  for (uint32_t i = 0; i < info->memory_count; i++) write_memory(&device->memories[i], writer);
}

static void write_body(const tm_backend_slot *slot, bool with_moment, tm_field_writer *writer) {
  tm_field_write_text(writer, slot->build_id);
  tm_field_write_number(writer, slot->option_count);
  for (uint32_t i = 0; i < slot->option_count; i++) {
    tm_field_write_number(writer, slot->options[i].type);
    tm_field_write_text(writer, slot->options[i].name);
    tm_field_write_text(writer, slot->options[i].default_value);
    tm_field_write_text(writer, slot->options[i].help);
  }
  tm_field_write_number(writer, slot->device_count);
  for (uint32_t i = 0; i < slot->device_count; i++)
    write_device(slot->inventory->devices[slot->first_device + i], with_moment, writer);
}

static void write_head(uint32_t state, const char *own_name, const char *version, const char *vendor, const char *reason,
                       tm_field_writer *writer) {
  tm_field_write_text(writer, MAGIC);
  tm_field_write_number(writer, state);
  tm_field_write_text(writer, own_name);
  tm_field_write_text(writer, version);
  tm_field_write_text(writer, vendor);
  tm_field_write_text(writer, reason);
}

static void write_findings(const tm_backend_slot *slot, tm_field_writer *writer) {
  tm_field_write_text(writer, slot->note);
  tm_field_write_number(writer, slot->wake_ns);
  tm_field_write_number(writer, slot->fault_count);
  for (uint32_t i = 0; i < slot->fault_count; i++) {
    tm_field_write_number(writer, slot->faults[i].device);
    tm_field_write_number(writer, slot->faults[i].op);
    tm_field_write_number(writer, slot->faults[i].format);
    tm_field_write_text(writer, slot->faults[i].text);
  }
}

void tm_enumeration_write(const tm_backend_slot *slot, tm_field_writer *writer) {
  write_head(atomic_load(&slot->state), slot->own_name, slot->version, slot->vendor, atomic_load(&slot->reason), writer);
  write_findings(slot, writer);
  write_body(slot, true, writer);
}

void tm_enumeration_write_identity(const tm_backend_slot *slot, tm_field_writer *writer) {
  write_head(0, slot->own_name, slot->version, slot->vendor, "", writer);
  write_body(slot, false, writer);
}

void tm_enumeration_write_refusal(const tm_backend_slot *slot, const char *reason, tm_field_writer *writer) {
  write_head(TM_BACKEND_REFUSED, slot->told_name == NULL ? "" : slot->told_name, slot->version, slot->vendor, reason, writer);
  write_findings(slot, writer);
  write_body(slot, false, writer);
}

/* ---- reading ---- */

static bool read_head(tm_field_reader *reader, tm_enumeration_head *out_head, tm_string *out_vendor) {
  const tm_string magic = tm_field_read(reader);
  out_head->state = tm_field_read_count(reader, TM_BACKEND_REFUSED);
  out_head->own_name = tm_field_read(reader);
  out_head->version = tm_field_read(reader);
  *out_vendor = tm_field_read(reader);
  out_head->reason = tm_field_read(reader);
  return !reader->failed && tm_field_is(magic, MAGIC);
}

static tm_identity read_identity(tm_field_reader *reader) {
  tm_identity identity = { { 0 } };
  const tm_string field = tm_field_read(reader);
  if (field.length == sizeof identity.bytes)
    memcpy(identity.bytes, field.data, sizeof identity.bytes);
  else
    reader->failed = true;
  return identity;
}

static void read_memory(tm_field_reader *reader, tm_memory_space *out_space) {
  memset(out_space, 0, sizeof *out_space);
  out_space->struct_size = sizeof *out_space;
  out_space->flags = tm_field_read_count(reader, UINT32_MAX);
  out_space->identity = read_identity(reader);
  out_space->name = tm_field_read(reader);
  out_space->total_bytes = tm_field_read_number(reader);
  out_space->largest_buffer_bytes = tm_field_read_number(reader);
  out_space->largest_binding_bytes = tm_field_read_number(reader);
  out_space->alignment = tm_field_read_count(reader, UINT32_MAX);
  out_space->offset_granule = tm_field_read_count(reader, UINT32_MAX);
  out_space->store_granule = tm_field_read_count(reader, UINT32_MAX);
}

/* A device and the memories that its description points to. */
typedef struct read_device {
  tm_device_info         info;
  tm_identity            own_uuid;
  tm_memory_space        spaces[TM_MOST_MEMORIES];
  const tm_memory_space *pointers[TM_MOST_MEMORIES];
} read_device;

static void read_one(tm_field_reader *reader, read_device *out_device) {
  tm_device_info *info = &out_device->info;
  memset(info, 0, sizeof *info);
  info->struct_size = sizeof *info;
  info->flags = tm_field_read_count(reader, UINT32_MAX);
  info->uuid = read_identity(reader);
  out_device->own_uuid = read_identity(reader);
  info->resource = read_identity(reader);
  info->name = tm_field_read(reader);
  info->driver_version = tm_field_read(reader);
  info->epoch = tm_field_read_number(reader);
  info->open_ns = tm_field_read_number(reader);
  info->cost_model_id = tm_field_read_number(reader);
  info->queue_count = tm_field_read_count(reader, UINT32_MAX);
  info->memory_count = tm_field_read_count(reader, TM_MOST_MEMORIES);
  info->memories = out_device->pointers;
  for (uint32_t i = 0; i < info->memory_count; i++) {
    read_memory(reader, &out_device->spaces[i]);
    out_device->pointers[i] = &out_device->spaces[i];
  }
}

static bool is_clean(tm_string text) { return tm_text_is_clean(text.data, text.length); }

/* For people, so a record that was tampered with must not bring what a terminal obeys. */
static const char *keep(tm_arena *arena, tm_string text) {
  return tm_arena_string(arena, is_clean(text) ? text.data : "", is_clean(text) ? text.length : 0);
}

/* What lies between the head and the devices, into the slot, or past it if there is none. */
static bool read_findings(tm_field_reader *reader, tm_backend_slot *slot) {
  const tm_string note = tm_field_read(reader);
  const uint64_t wake_ns = tm_field_read_number(reader);
  const uint32_t count = tm_field_read_count(reader, TM_MOST_FAULTS);
  tm_backend_fault *faults = NULL;
  if (slot != NULL) {
    faults = tm_arena_calloc(&slot->inventory->arena, count, sizeof *faults);
    slot->note = keep(&slot->inventory->arena, note);
    if (faults == NULL || slot->note == NULL) return false;
    slot->wake_ns = wake_ns;
    slot->faults = faults;
    slot->fault_count = count;
  }
  for (uint32_t i = 0; i < count; i++) {
    tm_backend_fault fault;
    fault.device = tm_field_read_count(reader, UINT32_MAX);
    fault.op = tm_field_read_count(reader, UINT32_MAX);
    fault.format = tm_field_read_count(reader, UINT32_MAX);
    const tm_string text = tm_field_read(reader);
    if (slot == NULL) continue;
    fault.text = keep(&slot->inventory->arena, text);
    if (fault.text == NULL) return false;
    faults[i] = fault;
  }
  return !reader->failed;
}

static bool read_options(tm_field_reader *reader, tm_backend_slot *slot) {
  const tm_string build_id = tm_field_read(reader);
  const uint32_t count = tm_field_read_count(reader, MOST_OPTIONS);
  tm_arena *arena = slot == NULL ? NULL : &slot->inventory->arena;
  tm_backend_option *options = slot == NULL ? NULL : tm_arena_calloc(arena, count, sizeof *options);
  if (slot != NULL && options == NULL) return false;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t type = tm_field_read_count(reader, UINT32_MAX);
    const tm_string name = tm_field_read(reader), value = tm_field_read(reader), help = tm_field_read(reader);
    if (slot == NULL) continue;
    options[i] = (tm_backend_option){ type, keep(arena, name), tm_arena_string(arena, value.data, value.length),
                                      tm_arena_string(arena, help.data, help.length), NULL };
    options[i].value = options[i].default_value;
    if (options[i].name == NULL || options[i].value == NULL || options[i].help == NULL) return false;
  }
  if (slot == NULL) return !reader->failed;
  slot->build_id = keep(arena, build_id);
  slot->options = options;
  slot->option_count = count;
  return slot->build_id != NULL && !reader->failed;
}

bool tm_enumeration_look(const char *bytes, uint64_t length, tm_enumeration_head *out_head) {
  tm_field_reader reader;
  tm_string vendor;
  read_device device;
  tm_field_reader_init(&reader, bytes, length);
  if (!read_head(&reader, out_head, &vendor) || !read_findings(&reader, NULL) || !read_options(&reader, NULL)) return false;
  const uint32_t count = tm_field_read_count(&reader, TM_MOST_DEVICES);
  for (uint32_t i = 0; i < count && !reader.failed; i++) read_one(&reader, &device);
  const bool is_named = out_head->state == TM_BACKEND_REFUSED || out_head->own_name.length != 0;
  return !reader.failed && tm_field_at_end(&reader) && is_named && is_clean(out_head->own_name) && is_clean(out_head->version) &&
         is_clean(out_head->reason);
}

tm_status tm_enumeration_take_header(tm_backend_slot *slot, const char *bytes, uint64_t length, tm_error *error) {
  tm_arena *arena = &slot->inventory->arena;
  tm_field_reader reader;
  tm_enumeration_head head;
  tm_string vendor;
  tm_field_reader_init(&reader, bytes, length);
  const bool ok = read_head(&reader, &head, &vendor) && read_findings(&reader, slot) && read_options(&reader, slot);
  slot->own_name = head.own_name.length == 0 ? NULL : keep(arena, head.own_name);
  slot->version = keep(arena, head.version);
  slot->vendor = keep(arena, vendor);
  if (ok && slot->version != NULL && slot->vendor != NULL && (slot->own_name != NULL) == (head.own_name.length != 0)) return TM_OK;
  return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for the list of backends");
}

tm_status tm_enumeration_take_devices(tm_backend_slot *slot, const tm_context_options *options, const char *bytes,
                                      uint64_t length, tm_error *error) {
  tm_field_reader reader;
  tm_enumeration_head head;
  tm_string vendor;
  read_device device;
  tm_field_reader_init(&reader, bytes, length);
  (void)read_head(&reader, &head, &vendor);
  (void)read_findings(&reader, NULL);
  (void)read_options(&reader, NULL);
  const uint32_t count = tm_field_read_count(&reader, TM_MOST_DEVICES);
  for (uint32_t i = 0; i < count; i++) {
    read_one(&reader, &device);
    if (reader.failed) return tm_fail(error, TM_ERROR_CORRUPT, "what was kept of its devices is damaged");
    TM_TRY(tm_device_listing_add(slot, options, &device.info, &device.own_uuid, true, error));
  }
  return TM_OK;
}
