/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/table.h"

#include <string.h>

#include "base/dynamic_library.h"
#include "base/error.h"
#include "plugin/sized_struct.h"

#define LONGEST_NAME 64u
#define LONGEST_STRING 4096u
#define MOST_TRAITS 64u
#define LARGEST_TABLE 65536u
#define MOST_OPTIONS 256u

/* ---- defaults: what a gap means ---- */

static tm_status default_init(const tm_host *host, tm_backend **out_backend) {
  (void)host;
  *out_backend = NULL;
  return TM_OK;
}

static void default_shutdown(tm_backend *backend) { (void)backend; }

static tm_status default_open(tm_backend *backend, uint32_t index, tm_device **out_device) {
  (void)index;
  *out_device = (tm_device *)(void *)backend;
  return TM_OK;
}

static void default_close(tm_device *device) { (void)device; }

static void default_release(tm_device *device, tm_kernel *kernel) {
  (void)device;
  (void)kernel;
}

static tm_status default_buffer_create(tm_device *device, uint32_t space, uint64_t bytes, tm_buffer **out_buffer) {
  (void)device, (void)space, (void)bytes, (void)out_buffer;
  return TM_UNSUPPORTED;
}

static tm_status default_buffer_import(tm_device *device, uint32_t space, void *memory, uint64_t bytes,
                                       uint32_t read_only, tm_buffer **out_buffer) {
  (void)device, (void)space, (void)memory, (void)bytes, (void)read_only, (void)out_buffer;
  return TM_UNSUPPORTED;
}

static void default_buffer_destroy(tm_device *device, uint32_t space, tm_buffer *buffer, uint64_t bytes, uint32_t imported) {
  (void)device, (void)space, (void)buffer, (void)bytes, (void)imported;
}

/* On host memory a buffer is its address. */
static char *at(tm_buffer *buffer, uint64_t offset) { return (char *)(void *)buffer + offset; }

static tm_status default_upload(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  (void)device, (void)out_ticket;
  if (transfer->bytes != 0) memcpy(at(transfer->destination, transfer->destination_offset), transfer->host, transfer->bytes);
  return TM_OK;
}

static tm_status default_download(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  (void)device, (void)out_ticket;
  if (transfer->bytes != 0) memcpy(transfer->host, at(transfer->source, transfer->source_offset), transfer->bytes);
  return TM_OK;
}

static tm_status default_copy(tm_device *device, const tm_transfer *transfer, tm_ticket *out_ticket) {
  (void)device, (void)out_ticket;
  if (transfer->bytes != 0)
    memmove(at(transfer->destination, transfer->destination_offset), at(transfer->source, transfer->source_offset),
            transfer->bytes);
  return TM_OK;
}

static tm_status default_flush(tm_device *device, uint32_t queue) {
  (void)device, (void)queue;
  return TM_OK;
}

static tm_status default_wait(tm_device *device, const tm_ticket *tickets, uint32_t count, uint64_t timeout_ns) {
  (void)device, (void)tickets, (void)count, (void)timeout_ns;
  return TM_OK;
}

static tm_status default_cancel(tm_device *device, uint32_t queue) {
  (void)device, (void)queue;
  return TM_OK;
}

static tm_status default_memory_stats(tm_device *device, uint32_t space, tm_memory_stats *out_stats) {
  (void)device, (void)space, (void)out_stats;
  return TM_UNSUPPORTED;
}

static const void *default_get_extension(tm_backend *backend, tm_string name, uint32_t revision) {
  (void)backend, (void)name, (void)revision;
  return NULL;
}

static const tm_accelerator_backend_plugin defaults = {
  .struct_size = sizeof defaults,
  .init = default_init,
  .shutdown = default_shutdown,
  .open = default_open,
  .close = default_close,
  .release = default_release,
  .buffer_create = default_buffer_create,
  .buffer_import = default_buffer_import,
  .buffer_destroy = default_buffer_destroy,
  .upload = default_upload,
  .download = default_download,
  .copy = default_copy,
  .flush = default_flush,
  .wait = default_wait,
  .cancel = default_cancel,
  .memory_stats = default_memory_stats,
  .get_extension = default_get_extension,
};

/* ---- the function slots of the table, as data ---- */

typedef struct slot {
  const char *name;
  size_t      offset;
  bool        mandatory;
} slot;

#define SLOT(member, mandatory) { #member, offsetof(tm_accelerator_backend_plugin, member), mandatory }

static const slot slots[] = {
  SLOT(init, false),          SLOT(shutdown, false),      SLOT(device_info, true),    SLOT(open, false),
  SLOT(close, false),         SLOT(query, true),          SLOT(prepare, true),        SLOT(release, false),
  SLOT(buffer_create, false), SLOT(buffer_import, false), SLOT(buffer_destroy, false), SLOT(upload, false),
  SLOT(download, false),      SLOT(copy, false),          SLOT(launch, true),         SLOT(flush, false),
  SLOT(wait, false),          SLOT(cancel, false),        SLOT(memory_stats, false),  SLOT(get_extension, false),
};

typedef void (*any_fn)(void);
_Static_assert(sizeof(any_fn) == sizeof(void *), "function pointers are as wide as data pointers here");

static void *read_slot(const tm_accelerator_backend_plugin *table, const slot *which) {
  void *function;
  memcpy(&function, (const char *)table + which->offset, sizeof function);
  return function;
}

static tm_status fill_slot(tm_accelerator_backend_plugin *table, const slot *which, const char *path, tm_error *error) {
  const void *function = read_slot(table, which);
  if (function == NULL) {
    if (which->mandatory)
      return tm_fail(error, TM_ERROR_CORRUPT, "the mandatory function '%s' is missing from its table", which->name);
    memcpy((char *)table + which->offset, (const char *)&defaults + which->offset, sizeof function);
    return TM_OK;
  }
  if (path != NULL && !tm_library_contains(path, function))
    return tm_fail(error, TM_ERROR_CORRUPT, "its function '%s' lies outside its own file", which->name);
  return TM_OK;
}

/* ---- the header ---- */

typedef struct known_layout {
  uint32_t abi_minor;
  uint64_t fingerprint;
} known_layout;

static const known_layout known_layouts[] = {
#include "plugin/layout_fingerprints.inc"
};

/* A plugin newer than us has a layout that we cannot know; it promises to have appended only. */
static tm_status check_layout(const tm_plugin_header *header, tm_error *error) {
  for (size_t i = 0; i < sizeof known_layouts / sizeof known_layouts[0]; i++) {
    if (known_layouts[i].abi_minor != header->abi_minor) continue;
    if (known_layouts[i].fingerprint == header->layout_fingerprint) return TM_OK;
    return tm_fail(error, TM_ERROR_CORRUPT,
                   "built against a changed header: layout fingerprint %016llx, expected %016llx for version %u.%u; rebuild it",
                   (unsigned long long)header->layout_fingerprint, (unsigned long long)known_layouts[i].fingerprint,
                   header->abi_major, header->abi_minor);
  }
  if (header->abi_minor > TM_ABI_MINOR) return TM_OK;
  return tm_fail(error, TM_ERROR_CORRUPT, "made for contract version %u.%u, which never was; this library serves %u.%u",
                 header->abi_major, header->abi_minor, TM_ABI_MAJOR, TM_ABI_MINOR);
}

static tm_status check_string(const char *what, tm_string string, tm_error *error) {
  const bool sound = string.length <= LONGEST_STRING && (string.data != NULL || string.length == 0);
  return sound ? TM_OK : tm_fail(error, TM_ERROR_CORRUPT, "its %s is no sound string", what);
}

static tm_status check_name(tm_string name, tm_error *error) {
  if (name.data == NULL || name.length == 0 || name.length > LONGEST_NAME)
    return tm_fail(error, TM_ERROR_CORRUPT, "its name must have 1 to %u characters", LONGEST_NAME);
  for (uint64_t i = 0; i < name.length; i++) {
    const char c = name.data[i];
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9' && i > 0) || (c == '_' && i > 0)))
      return tm_fail(error, TM_ERROR_CORRUPT, "its name must be of the form lower_snake");
  }
  return TM_OK;
}

static tm_status check_build(const tm_plugin_header *header, tm_error *error) {
  if (header->build_flags == TM_BUILD_FLAGS) return TM_OK;
  return tm_fail(error, TM_ERROR_CORRUPT,
                 "built otherwise than this library: flags 0x%x, expected 0x%x (1 64-bit, 2 big-endian, 4 address sanitizer, "
                 "8 thread sanitizer, 16 memory sanitizer)",
                 header->build_flags, (unsigned)TM_BUILD_FLAGS);
}

static tm_status check_header(const tm_plugin_header *header, tm_error *error) {
  if (header == NULL)
    return tm_fail(error, TM_ERROR_CORRUPT, "it does not serve contract version %u.%u", TM_ABI_MAJOR, TM_ABI_MINOR);
  if (header->magic != TM_PLUGIN_MAGIC)
    return tm_fail(error, TM_ERROR_CORRUPT, "wrong magic number %016llx, expected %016llx",
                   (unsigned long long)header->magic, (unsigned long long)TM_PLUGIN_MAGIC);
  if (header->header_size != sizeof(tm_plugin_header))
    return tm_fail(error, TM_ERROR_CORRUPT, "wrong header size %u, expected %zu", header->header_size, sizeof(tm_plugin_header));
  if (header->abi_major != TM_ABI_MAJOR)
    return tm_fail(error, TM_ERROR_CORRUPT, "made for contract version %u.%u; this library serves %u.%u", header->abi_major,
                   header->abi_minor, TM_ABI_MAJOR, TM_ABI_MINOR);
  TM_TRY(check_build(header, error));
  TM_TRY(check_layout(header, error));
  TM_TRY(check_name(header->name, error));
  TM_TRY(check_string("version", header->version, error));
  TM_TRY(check_string("vendor", header->vendor, error));
  TM_TRY(check_string("build id", header->build_id, error));
  if (header->trait_count == 0 || header->trait_count > MOST_TRAITS || header->traits == NULL)
    return tm_fail(error, TM_ERROR_CORRUPT, "it offers %llu traits, expected 1 to %u", (unsigned long long)header->trait_count,
                   MOST_TRAITS);
  return TM_OK;
}

static const tm_accelerator_backend_plugin *find_table(const tm_plugin_header *header) {
  static const char id[] = TM_TRAIT_ACCELERATOR_BACKEND;
  for (uint64_t i = 0; i < header->trait_count; i++) {
    const tm_trait *trait = &header->traits[i];
    if (trait->revision == TM_TRAIT_ACCELERATOR_BACKEND_REVISION && trait->id.length == sizeof id - 1 &&
        trait->id.data != NULL && memcmp(trait->id.data, id, sizeof id - 1) == 0)
      return trait->table;
  }
  return NULL;
}

/* Options are read where they lie, so no more of them than every minor has. */
static tm_status check_options(const tm_accelerator_backend_plugin *table, tm_error *error) {
  if (table->option_count > MOST_OPTIONS || (table->option_count != 0 && table->options == NULL))
    return tm_fail(error, TM_ERROR_CORRUPT, "its list of options is not sound");
  for (uint32_t i = 0; i < table->option_count; i++) {
    const tm_option *option = table->options[i];
    if (option == NULL || option->struct_size < TM_OPTION_BYTES_MINOR_1)
      return tm_fail(error, TM_ERROR_CORRUPT, "its option %u is not sound", i);
    TM_TRY(check_name(option->name, error));
    TM_TRY(check_string("option's default", option->default_value, error));
    TM_TRY(check_string("option's help", option->help, error));
  }
  return TM_OK;
}

tm_status tm_plugin_table_accept(const tm_plugin_header *header, const char *path,
                                 tm_accelerator_backend_plugin *out_table, tm_error *error) {
  TM_TRY(check_header(header, error));
  const tm_accelerator_backend_plugin *offered = find_table(header);
  if (offered == NULL)
    return tm_fail(error, TM_ERROR_CORRUPT, "it offers no %s of revision %u", TM_TRAIT_ACCELERATOR_BACKEND,
                   TM_TRAIT_ACCELERATOR_BACKEND_REVISION);
  const size_t least = offsetof(tm_accelerator_backend_plugin, options) + sizeof offered->options;
  if (offered->struct_size < least || offered->struct_size > LARGEST_TABLE)
    return tm_fail(error, TM_ERROR_CORRUPT, "its table has a size of %u bytes, expected %zu to %u", offered->struct_size, least,
                   LARGEST_TABLE);
  tm_accelerator_backend_plugin table;
  tm_sized_struct_take(&table, sizeof table, offered, offered->struct_size);
  table.struct_size = sizeof table;
  TM_TRY(check_options(&table, error));
  for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) TM_TRY(fill_slot(&table, &slots[i], path, error));
  *out_table = table;
  return TM_OK;
}

bool tm_plugin_table_has_cancel(const tm_accelerator_backend_plugin *table) { return table->cancel != default_cancel; }

bool tm_plugin_table_has_buffers(const tm_accelerator_backend_plugin *table) {
  return table->buffer_create != default_buffer_create;
}

bool tm_plugin_table_has_copy(const tm_accelerator_backend_plugin *table) { return table->copy != default_copy; }
