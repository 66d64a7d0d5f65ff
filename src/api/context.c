/* SPDX-License-Identifier: Apache-2.0 */
#include "api/context.h"

#include <string.h>

#include "base/error.h"
#include "base/kept_file.h"
#include "base/memory_limit.h"
#include "plugin/crash_marks.h"
#include "plugin/settings.h"

#define DEFAULT_MAX_HEADER_BYTES UINT64_C(100000000)
#define MOST_THREADS 1024u
#define KNOWN_FLAGS (TM_CONTEXT_MAP_FILES | TM_CONTEXT_LOAD_PLUGINS | TM_CONTEXT_REPRODUCIBLE | TM_CONTEXT_STRICT)

#define SMALLEST_OPTIONS (2 * sizeof(uint32_t))
#define LARGEST_OPTIONS 4096u

tm_status tm_copy_in(const void *given, const char *what, void *out_known, uint32_t known_bytes, tm_error *error) {
  uint32_t size;
  memcpy(&size, given, sizeof size);
  if (size < SMALLEST_OPTIONS || size > LARGEST_OPTIONS)
    return tm_fail(error, TM_ERROR_ARGUMENT, "%s: struct_size is %u; set it to the struct's sizeof", what, size);
  const unsigned char *bytes = given;
  for (uint32_t i = known_bytes; i < size; i++)
    if (bytes[i] != 0)
      return tm_fail(error, TM_ERROR_ARGUMENT, "%s: byte %u is set, but this library (%s) knows %u only; it is too old", what, i,
                     tm_version(), known_bytes);
  memset(out_known, 0, known_bytes);
  memcpy(out_known, given, size < known_bytes ? size : known_bytes);
  return TM_OK;
}

tm_status tm_expect_reserved(uint32_t value, const char *what, tm_error *error) {
  return value == 0 ? TM_OK : tm_fail(error, TM_ERROR_ARGUMENT, "%s: `reserved` is %u, expected 0", what, value);
}

uint32_t tm_context_accepts(const tm_context *context, const tm_op_row *row, uint32_t asked) {
  if (asked != TM_NUMERICS_DEFAULT) return asked;
  return context->worst_numerics != TM_NUMERICS_DEFAULT ? context->worst_numerics : row->default_numerics;
}

static tm_status check_texts(const char *what, const char *const *texts, uint32_t count, tm_error *error) {
  if (count != 0 && texts == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "context options: %u %s counted, but there is no list of them", count, what);
  for (uint32_t i = 0; i < count; i++)
    if (texts[i] == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "context options: %s: number %u is NULL", what, i);
  return TM_OK;
}

static tm_status check_settings(const tm_setting *settings, uint32_t count, tm_error *error) {
  if (count != 0 && settings == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "context options: %u settings counted, but there is no list of them", count);
  for (uint32_t i = 0; i < count; i++) {
    const char *const texts[] = { settings[i].backend, settings[i].name, settings[i].value };
    TM_TRY(check_texts("texts of a setting (backend, name, value)", texts, 3, error));
  }
  return TM_OK;
}

/* The pointer itself may be NULL: what that means is the backend's business. */
static tm_status check_pointers(const tm_named_pointer *pointers, uint32_t count, tm_error *error) {
  if (count != 0 && pointers == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "context options: %u pointers counted, but there is no list of them", count);
  for (uint32_t i = 0; i < count; i++) {
    const char *const texts[] = { pointers[i].backend, pointers[i].name };
    TM_TRY(check_texts("texts of a pointer (backend, name)", texts, 2, error));
  }
  return TM_OK;
}

static tm_status check_lists(const tm_context_options *options, tm_error *error) {
  TM_TRY(check_texts("plugin paths", options->plugin_paths, options->plugin_path_count, error));
  TM_TRY(check_texts("devices", options->devices, options->device_count, error));
  TM_TRY(check_texts("excluded devices", options->excluded_devices, options->excluded_device_count, error));
  TM_TRY(check_settings(options->settings, options->setting_count, error));
  return check_pointers(options->pointers, options->pointer_count, error);
}

static tm_status check_options(const tm_context_options *options, tm_error *error) {
  if ((options->flags & ~KNOWN_FLAGS) != 0)
    return tm_fail(error, TM_ERROR_ARGUMENT, "context options: unknown flags 0x%x", options->flags & ~KNOWN_FLAGS);
  if (options->thread_count > MOST_THREADS)
    return tm_fail(error, TM_ERROR_ARGUMENT, "context options: %u threads, at most %u", options->thread_count, MOST_THREADS);
  if (options->worst_numerics_plus_one > TM_NUMERICS_N4 + 1)
    return tm_fail(error, TM_ERROR_ARGUMENT, "context options: unknown numerics class");
  if ((options->alloc == NULL) != (options->free == NULL))
    return tm_fail(error, TM_ERROR_ARGUMENT, "context options: alloc and free come together");
  return check_lists(options, error);
}

static tm_status read_options(const tm_context_options *given, tm_context_options *out_options, tm_error *error) {
  memset(out_options, 0, sizeof *out_options);
  if (given == NULL) return TM_OK;
  TM_TRY(tm_copy_in(given, "context options", out_options, sizeof *out_options, error));
  return check_options(out_options, error);
}

static void init_memory(tm_memory *memory, const tm_context_options *options) {
  tm_memory_init(memory, options->max_memory_bytes);
  if (options->alloc == NULL) return;
  memory->alloc = options->alloc;
  memory->free = options->free;
  memory->context = options->allocator_context;
}

/* What is kept for speed yields to what is asked for. */
static void give_back(void *context_pointer) {
  tm_context *context = context_pointer;
  tm_placement_table_drop(&context->placements);
  tm_kept_drop(&context->kept, NULL);
  tm_scratch_drop(&context->scratch);
}

/* What is known can be read where nothing can be written. */
static tm_status build_scheduler(tm_context *context, const char *state_folder, const char *known_folder, tm_error *error) {
  tm_status status = tm_correction_init(&context->correction, &context->memory);
  if (status == TM_OK) status = tm_health_init(&context->health, &context->memory, context->inventory, state_folder);
  if (status == TM_OK)
    status = tm_profile_init(&context->profile, &context->memory, context->inventory, &context->correction, known_folder);
  if (state_folder == NULL) atomic_store(&context->profile.file.is_silent, true);       /* that was said */
  if (state_folder == NULL) atomic_store(&context->profile.is_loss_said, true);
  if (status == TM_OK) status = tm_setup_ledger_init(&context->setups, &context->memory);
  if ((context->flags & TM_CONTEXT_REPRODUCIBLE) != 0) atomic_store(&context->correction.is_frozen, true);
  const tm_market market = { context->inventory, &context->correction, &context->health, &context->setups, &context->memory, NULL };
  if (status == TM_OK) status = tm_placement_table_init(&context->placements, &market, &context->memory);
  if (status == TM_OK) status = tm_scratch_init(&context->scratch, &context->memory);
  if (status == TM_OK) status = tm_kept_init(&context->kept, &context->memory, &context->setups);
  context->runner = (tm_runner){ .table = &context->placements, .scratch = &context->scratch, .kept = &context->kept,
                                 .is_strict = (context->flags & TM_CONTEXT_STRICT) != 0 };
  if (status != TM_OK) return tm_fail(error, status, "no memory for the scheduler");
  context->memory.reclaim = give_back;
  context->memory.reclaim_context = context;
  return TM_OK;
}

/* The options do not outlive this call, so what they say about devices is kept. */
static tm_status keep_exclusions(tm_context *context, const tm_context_options *options, tm_error *error) {
  const tm_inventory *inventory = context->inventory;
  context->exclusions = tm_memory_calloc(&context->memory, inventory->device_count, sizeof *context->exclusions);
  if (context->exclusions == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a context");
  for (uint32_t i = 0; i < inventory->device_count; i++)
    context->exclusions[i] = tm_settings_exclude_device(options, inventory->devices[i]->backend->name, inventory->devices[i]->name);
  return TM_OK;
}

/* Where nothing can be kept that is said once, for all that would be. */
static const char *find_writable(const tm_context *context, const char *state_folder) {
  tm_error why = TM_ERROR_INIT;
  if (state_folder == NULL || state_folder[0] == '\0' || tm_kept_folder_make(state_folder, &why) == TM_OK) return state_folder;
  tm_log_write(&context->log, TM_LOG_WARNING, "the state folder %s cannot be used; nothing is kept: %s", state_folder, why.text);
  return NULL;
}

static tm_status build(tm_context *context, const tm_context_options *given, tm_error *error) {
  tm_context_options here = *given, *const options = &here;
  here.state_folder = find_writable(context, given->state_folder);
  TM_TRY(tm_pool_create(&context->memory, options->thread_count, &context->pool, error));
  if (options->state_folder != NULL)
    TM_TRY(tm_crash_marks_open(&context->memory, options->state_folder, (options->flags & TM_CONTEXT_MAP_FILES) != 0, context->log,
                               &context->crash_marks, error));
  const tm_inventory_request request = { .options = options, .search_folders = (options->flags & TM_CONTEXT_LOAD_PLUGINS) != 0,
                                         .crash_marks = context->crash_marks };
  TM_TRY(tm_inventory_create(&context->memory, context->pool, context->log, &request, &context->inventory, error));
  TM_TRY(keep_exclusions(context, options, error));
  return build_scheduler(context, options->state_folder, given->state_folder, error);
}

tm_status tm_context_create(const tm_context_options *given, tm_context **out_context, tm_error *error) {
  tm_context_options options;
  TM_TRY(read_options(given, &options, error));
  tm_memory bootstrap;
  init_memory(&bootstrap, &options);
  tm_context *context = tm_memory_calloc(&bootstrap, 1, sizeof *context);
  if (context == NULL)
    return tm_memory_name_limit(&bootstrap, tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a context"), error);
  init_memory(&context->memory, &options);
  context->log = (tm_log){ options.log, options.log_context };
  context->flags = options.flags;
  context->max_open_files = options.max_open_files;
  context->max_header_bytes = options.max_header_bytes != 0 ? options.max_header_bytes : DEFAULT_MAX_HEADER_BYTES;
  context->worst_numerics = options.worst_numerics_plus_one == 0 ? TM_NUMERICS_DEFAULT : options.worst_numerics_plus_one - 1;
  if ((options.flags & TM_CONTEXT_REPRODUCIBLE) != 0) context->worst_numerics = TM_NUMERICS_N0;
  const tm_status status = tm_memory_name_limit(&context->memory, build(context, &options, error), error);
  if (status == TM_OK)
    *out_context = context;
  else
    tm_context_destroy(context);
  return status;
}

void tm_context_destroy(tm_context *context) {
  if (context == NULL) return;
  context->memory.reclaim = NULL;
  tm_health_acquit(&context->health);
  tm_placement_table_deinit(&context->placements);
  tm_kept_deinit(&context->kept);
  tm_scratch_deinit(&context->scratch);
  tm_setup_ledger_deinit(&context->setups);
  tm_profile_deinit(&context->profile);
  tm_correction_deinit(&context->correction);
  const uint64_t device_count = context->inventory == NULL ? 0 : context->inventory->device_count;
  tm_memory_free(&context->memory, context->exclusions, device_count * sizeof *context->exclusions);
  const bool is_whole = tm_inventory_destroy(context->inventory);
  tm_health_deinit(&context->health);
  tm_crash_marks_close(context->crash_marks);
  if (!is_whole) return;
  tm_pool_destroy(context->pool);
  const tm_memory memory = context->memory;
  memory.free(memory.context, context, sizeof *context);
}

void tm_context_memory_usage(const tm_context *context, tm_memory_usage *out_usage) {
  const tm_memory_usage usage = {
    .struct_size = out_usage->struct_size,
    .used_bytes = atomic_load(&context->memory.used_bytes),
    .peak_bytes = atomic_load(&context->memory.peak_bytes),
    .limit_bytes = context->memory.limit_bytes,
  };
  tm_copy_out(out_usage, &usage, sizeof usage);
}

/* The one place that says which version this is. */
#define TEXT_(value) #value
#define TEXT(value) TEXT_(value)

const char *tm_version(void) { return TEXT(TM_VERSION_MAJOR) "." TEXT(TM_VERSION_MINOR) "." TEXT(TM_VERSION_PATCH); }

const char *tm_status_text(tm_status status) { return tm_status_name(status); }
