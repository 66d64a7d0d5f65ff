/* SPDX-License-Identifier: Apache-2.0 */
#include "merge_row_json.h"

#include <math.h>
#include <string.h>

typedef struct row_parts {
  tm_merge_part_description items[TM_MERGE_MOST_MODELS + 1];
  uint32_t count;
} row_parts;

static void find_parts(const tm_merge_plan *plan, uint64_t row, row_parts *out_parts) {
  for (out_parts->count = 0; out_parts->count <= TM_MERGE_MOST_MODELS; out_parts->count++) {
    tm_merge_part_description *part = &out_parts->items[out_parts->count];
    part->struct_size = sizeof *part;
    if (tm_merge_plan_part(plan, row, out_parts->count, part) != TM_OK) return;
  }
}

static void print_models(const row_parts *parts, tm_json_writer *json) {
  tm_json_begin_array(json, "models", true);
  for (uint32_t i = 0; i < parts->count; i++) tm_json_text(json, NULL, parts->items[i].name);
  tm_json_end_array(json);
}

static void print_weights(const row_parts *parts, tm_json_writer *json) {
  bool has_densities = false;
  tm_json_begin_array(json, "weights", true);
  for (uint32_t i = 0; i < parts->count; i++) tm_json_number(json, NULL, parts->items[i].weight);
  tm_json_end_array(json);
  for (uint32_t i = 0; i < parts->count; i++) has_densities = has_densities || !isnan(parts->items[i].density);
  if (has_densities) {
    tm_json_begin_array(json, "densities", true);
    for (uint32_t i = 0; i < parts->count; i++) tm_json_number(json, NULL, parts->items[i].density);
    tm_json_end_array(json);
  }
  if (parts->count == 0) return;
  if (!isnan(parts->items[0].scale)) tm_json_number(json, "scale", parts->items[0].scale);
  if (!isnan(parts->items[0].angle)) tm_json_number(json, "angle", parts->items[0].angle);
}

void tm_merge_row_print_json(const tm_merge_plan *plan, uint64_t row, const tm_column *columns, uint32_t count,
                             const tm_cell *cells, tm_json_writer *json) {
  row_parts parts;
  find_parts(plan, row, &parts);
  tm_json_begin_object(json, NULL, true);
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(columns[i].name, "models") == 0) print_models(&parts, json);
    else if (strcmp(columns[i].name, "weights") == 0) print_weights(&parts, json);
    else tm_cell_print_json(columns[i].name, &cells[i], json);
  }
  tm_json_end_object(json);
}
