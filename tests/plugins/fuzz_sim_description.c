/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim_description.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a device does with a description may rely on this. */
static void check_good(const sim_description *description) {
  const sim_memory *memory = &description->memory;
  if (description->name[0] == '\0' || description->claim_count == 0 || description->claim_count > SIM_MAX_CLAIMS) __builtin_trap();
  if (description->queues < 1 || description->queues > SIM_MAX_QUEUES) __builtin_trap();
  if (memory->bytes == 0 || memory->alignment > 4096 || (memory->alignment & (memory->alignment - 1)) != 0) __builtin_trap();
  if (!(description->link.bytes_per_second >= 1)) __builtin_trap();
  for (uint32_t i = 0; i < description->claim_count; i++) {
    const sim_claim *claim = &description->claims[i];
    if (claim->loop == NULL || !(claim->flops_per_second >= 1) || !(claim->bytes_per_second >= 1)) __builtin_trap();
    if (claim->m_multiple == 0 || claim->n_multiple == 0 || claim->k_multiple == 0) __builtin_trap();
    if (!isfinite(claim->numerics.bound)) __builtin_trap();
    if (claim->rank_max < 1 || claim->rank_max > TM_MAX_RANK || claim->numerics.class_number < claim->loop->numerics.class_number)
      __builtin_trap();
  }
}

/* A bad one gives a line that a terminal shows as it is. */
static void check_text(const char *text) {
  if (text[0] == '\0' || strlen(text) >= SIM_TEXT_BYTES) __builtin_trap();
  for (; *text != '\0'; text++)
    if (*text < ' ' || *text > '~') __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[SIM_TEXT_BYTES];
  sim_description *description = malloc(sizeof *description);
  if (description == NULL) return 0;
  if (sim_description_parse((const char *)data, size, "device.json", description, text)) check_good(description);
  else check_text(text);
  free(description);
  return 0;
}
