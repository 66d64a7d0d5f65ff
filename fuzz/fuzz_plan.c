/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>

#include "execute/plan_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was accepted names only devices and nodes that it has. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tm_memory memory;
  tm_plan_file file;
  tm_memory_init(&memory, UINT64_C(1) << 28);
  if (tm_plan_file_read(&memory, (const char *)data, size, &file, NULL) == TM_OK) {
    for (uint32_t i = 0; i < file.step_count; i++) {
      const tm_plan_file_step *step = &file.steps[i];
      if (step->node >= file.step_count || step->device >= file.device_count || step->lowering.length > size) __builtin_trap();
    }
    if (file.state_device != TM_PLAN_NONE && file.state_device >= file.device_count) __builtin_trap();
    tm_plan_file_deinit(&file);
  }
  if (memory.used_bytes != 0) __builtin_trap();
  return 0;
}
