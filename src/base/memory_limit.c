/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory_limit.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/shown_size.h"

#define LIMIT_NAME "(max_memory_bytes)"

tm_status tm_memory_name_limit(const tm_memory *memory, tm_status status, tm_error *error) {
  char text[sizeof error->text], least[64] = "";
  if (status != TM_ERROR_NO_MEMORY || error == NULL || memory->limit_bytes == 0) return status;
  if (strstr(error->text, LIMIT_NAME) != NULL) return status;   /* it was told further in */
  (void)snprintf(text, sizeof text, "%s", error->text);
  const uint64_t refused = atomic_load_explicit(&memory->refused_bytes, memory_order_relaxed);
  if (refused != 0) (void)snprintf(least, sizeof least, ", and at least %s are needed", tm_show_needed(refused).text);
  return tm_fail(error, status, "%.800s; %s are allowed in all " LIMIT_NAME "%s", text, tm_show_available(memory->limit_bytes).text,
                 least);
}
