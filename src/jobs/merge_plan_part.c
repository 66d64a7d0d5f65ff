/* SPDX-License-Identifier: Apache-2.0 */
/* merge_plan_part.c - what the rows of a plan are made of, as numbers: merge_plan.h. */
#include <math.h>

#include "jobs/merge_plan.h"

static const double none = NAN;

static double slerp_weight(const tm_merge_item *item, uint32_t part) {
  if (item->arc != NULL) return item->arc->factors[part];
  return part == 0 ? 1 - item->t : item->t;
}

/* Of what is computed; copies are taken over as they are. */
static void set_figures(const tm_merge_plan *plan, const tm_merge_item *item, uint32_t part, tm_merge_part_description *described) {
  const bool is_base = described->model == TM_MERGE_PART_BASE;
  const bool has_density = item->method == TM_MERGE_TIES || item->method == TM_MERGE_DARE;
  if (item->action != TM_MERGE_ACTION_COMPUTE) return;
  if (item->method == TM_MERGE_SLERP) described->weight = slerp_weight(item, part);
  if (item->method == TM_MERGE_SLERP && item->arc != NULL) described->angle = item->arc->angle;
  if (has_density && !is_base) described->density = item->inputs[part].density;
  if (tm_merge_has_base(&plan->settings) && item->method != TM_MERGE_LINEAR) described->scale = item->scale;
}

bool tm_merge_plan_part_at(tm_merge_plan *plan, uint64_t row, uint32_t part, tm_merge_part_description *out_part) {
  const tm_merge_settings *settings = &plan->settings;
  if (row >= plan->item_count || part >= plan->items[row].input_count) return false;
  const tm_merge_item *item = &plan->items[row];
  const tm_merge_input *input = &item->inputs[part];
  const bool is_base = input->source >= settings->model_count;
  *out_part = (tm_merge_part_description){
    .model = is_base ? TM_MERGE_PART_BASE : input->source,
    .name = is_base ? "base" : settings->names[input->source],
    .weight = is_base ? none : input->weight,
    .density = none,
    .scale = none,
    .angle = none,
  };
  tm_mutex_lock(&plan->lock);
  set_figures(plan, item, part, out_part);
  tm_mutex_unlock(&plan->lock);
  return true;
}

tm_status tm_merge_plan_keep_arc(tm_merge_plan *plan, uint64_t row, const tm_merge_arc *arc) {
  tm_mutex_lock(&plan->lock);
  tm_merge_arc *kept = tm_arena_calloc(&plan->arena, 1, sizeof *kept);
  if (kept != NULL) *kept = *arc;
  plan->items[row].arc = kept;
  tm_mutex_unlock(&plan->lock);
  return kept == NULL ? TM_ERROR_NO_MEMORY : TM_OK;
}
