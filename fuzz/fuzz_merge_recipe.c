/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "complain.h"
#include "merge_recipe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(const tm_merge_request *request, const tm_merge_rule_list *list, bool is_special) {
  for (uint32_t i = 0; i < list->count; i++) {
    const tm_merge_rule *rule = &list->items[i];
    if ((rule->pattern != NULL) != is_special || !isfinite(rule->value)) __builtin_trap();
    if (rule->what < TM_MERGE_SET_WEIGHT || rule->what > TM_MERGE_SET_FORMAT) __builtin_trap();
    if (rule->model >= request->model_count && rule->model != TM_MERGE_EVERY_MODEL && rule->model != 0) __builtin_trap();
  }
}

/* Whatever was accepted is sound: numbers are finite, models exist; what was refused says why and where. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tm_merge_request request;
  tm_error         error = TM_CLI_ERROR_INIT;
  tm_merge_request_init(&request);
  const tm_status status = tm_merge_recipe_parse("fuzzed.yaml", (const char *)data, size, &request, &error);
  if (status != TM_OK && (status != TM_ERROR_ARGUMENT || strncmp(error.text, "fuzzed.yaml:", 12) != 0)) __builtin_trap();
  if (request.model_count > TM_MERGE_MOST_MODELS || request.usual.count + request.special.count > 65536u) __builtin_trap();
  for (uint32_t i = 0; i < request.model_count; i++)
    if (request.models[i].path == NULL || request.models[i].path[0] == '\0') __builtin_trap();
  look_at(&request, &request.usual, false);
  look_at(&request, &request.special, true);
  tm_merge_request_deinit(&request);
  return 0;
}
