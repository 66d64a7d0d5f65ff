/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/process.h"

#define ENTRY_SYMBOL "tm_plugin_query"
#define PROBE_VARIABLE "TENSORMORPH_PROBE"
#define PROBE_NAME "tensormorph-probe"
#define PROBE_TIMEOUT_NS (UINT64_C(5) * 1000000000)
#define LONGEST_PATH 4096

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

/* The probe lies in libexec beside the folder of this library or of the program that holds it. */
static bool find_probe(char *path, size_t capacity) {
  const char *chosen = tm_is_privileged() ? NULL : getenv(PROBE_VARIABLE);
  if (chosen != NULL && chosen[0] == '/') return (size_t)snprintf(path, capacity, "%s", chosen) < capacity;
  char folder[LONGEST_PATH];
  if (!tm_library_folder(PROBE_NAME, folder, sizeof folder)) return false;
  static const char *const places[] = { "../libexec/tensormorph", "../../libexec/tensormorph" };
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    if ((size_t)snprintf(path, capacity, "%s/%s/%s", folder, places[i], PROBE_NAME) < capacity && tm_is_executable(path))
      return true;
  }
  return false;
}

/* What the probe found, as a reason; TM_OK when the file loads and answers. */
static tm_status judge_probe(const char *path, const tm_process_result *result, tm_error *error) {
  if (result->timed_out)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: loading it did not end within 5 s (tried in a process of its own)", path);
  if (strncmp(result->output, "ok", 2) == 0 && result->signal == 0) return TM_OK;
  if (result->signal != 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: loading it ends the process with signal %d (tried in a process of its own)",
                   path, result->signal);
  if (result->output_length == 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: loading it ends the process with exit code %d (tried in a process of its own)",
                   path, result->exit_code);
  return tm_fail(error, TM_ERROR_CORRUPT, "%.*s", (int)strcspn(result->output, "\n"), result->output);
}

static tm_status probe(const char *path, const tm_log *log, tm_error *error) {
  char program[LONGEST_PATH * 2];
  if (!find_probe(program, sizeof program)) {
    tm_log_write(log, TM_LOG_WARNING, "%s is not installed; %s is loaded without a trial in a process of its own", PROBE_NAME,
                 path);
    return TM_OK;
  }
  tm_process_result result;
  TM_TRY(tm_process_run(program, path, NULL, PROBE_TIMEOUT_NS, &result, error));
  return judge_probe(path, &result, error);
}

tm_status tm_plugin_library_load(const char *path, const tm_log *log, const tm_plugin_header **out_header, tm_error *error) {
  TM_TRY(probe(path, log, error));
  void *library = NULL;
  TM_TRY(tm_library_open(path, &library, error));
  tm_plugin_query_fn query = NULL;
  TM_TRY(tm_library_symbol(library, path, ENTRY_SYMBOL, &query, error));
  *out_header = query(TM_ABI_MAJOR, TM_ABI_MINOR);
  return TM_OK;
}
