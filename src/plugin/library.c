/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/library.h"

#include "base/error.h"
#include "plugin/probe_run.h"

#define ENTRY_SYMBOL "tm_plugin_query"

/* Runtimes that a library built like this one gets along with. */
static uint32_t own_sanitizers(void) {
  uint32_t own = 0;
  if ((TM_BUILD_FLAGS & TM_BUILD_ADDRESS_SANITIZER) != 0) own |= TM_SHARED_OBJECT_ADDRESS_SANITIZER;
  if ((TM_BUILD_FLAGS & TM_BUILD_THREAD_SANITIZER) != 0) own |= TM_SHARED_OBJECT_THREAD_SANITIZER;
  if ((TM_BUILD_FLAGS & TM_BUILD_MEMORY_SANITIZER) != 0) own |= TM_SHARED_OBJECT_MEMORY_SANITIZER;
  return own;
}

tm_status tm_plugin_library_examine(const char *path, tm_file_identity *out_identity, tm_error *error) {
  tm_shared_object object;
  TM_TRY(tm_library_examine(path, ENTRY_SYMBOL, &object, error));
  if (object.entry_count != 1)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: no plugin: it does not export %s itself (of %u exports; it is linked to: %s)", path,
                   ENTRY_SYMBOL, object.export_count, object.needed[0] == '\0' ? "nothing" : object.needed);
  if (object.wants_executable_stack)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: it wants an executable stack (link it with -z noexecstack)", path);
  if ((object.sanitizers & ~own_sanitizers()) != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: built with a sanitizer that this library was not built with (it is linked to: %s)",
                   path, object.needed);
  return tm_library_identify(path, out_identity, error);
}

tm_status tm_plugin_library_open(const char *path, const tm_plugin_header **out_header, tm_error *error) {
  void *library = NULL;
  TM_TRY(tm_library_open(path, &library, error));
  tm_plugin_query_fn query = NULL;
  TM_TRY(tm_library_symbol(library, path, ENTRY_SYMBOL, &query, error));
  *out_header = query(TM_ABI_MAJOR, TM_ABI_MINOR);
  return TM_OK;
}

tm_status tm_plugin_library_load(const char *path, const tm_log *log, const tm_plugin_header **out_header, tm_error *error) {
  const tm_probe_request request = { .path = path, .depth = TM_PROBE_LOAD };
  tm_memory memory;
  tm_probe_result result;
  tm_memory_init(&memory, 0);
  const tm_status status = tm_probe_run(&memory, &request, &result, error);
  tm_probe_deinit(&result);
  if (status == TM_ERROR_NOT_FOUND)
    tm_log_write(log, TM_LOG_WARNING, "%s is loaded without a trial: %s", path, error == NULL ? "none is possible" : error->text);
  else if (status != TM_OK)
    return status;
  return tm_plugin_library_open(path, out_header, error);
}
