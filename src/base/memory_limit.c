/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory_limit.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

tm_status tm_memory_name_limit(const tm_memory *memory, tm_status status, tm_error *error) {
  char text[sizeof error->text];
  if (status != TM_ERROR_NO_MEMORY || error == NULL || memory->limit_bytes == 0) return status;
  (void)snprintf(text, sizeof text, "%s", error->text);
  return tm_fail(error, status, "%.800s; %" PRIu64 " bytes are allowed in all (max_memory_bytes)", text, memory->limit_bytes);
}
