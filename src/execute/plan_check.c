/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_check.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "execute/plan_memory.h"
#include "execute/sampled_check.h"
#include "plugin/device.h"
#include "tensor/shape.h"

static uint32_t operand_count(const tm_plan_check *check) {
  return check->candidate->operation.input_count + check->candidate->operation.output_count;
}

static const tm_plan_operand *operand_at(const tm_plan_check *check, uint32_t index) {
  return &check->plan->program.operands[check->action->from + index];
}

static const tm_plan_location *location_of(const tm_plan_check *check, uint32_t index) {
  return &check->plan->program.locations[operand_at(check, index)->location];
}

/* Constants are the application's also where a device has a copy. */
static char *host_address(const tm_plan_check *check, uint32_t index) {
  const tm_plan_location *one = location_of(check, index);
  const uint64_t offset = one->kind == TM_LOCATION_NEXT ? 0 : check->plan->program.offsets[operand_at(check, index)->value];
  if (one->kind == TM_LOCATION_KEPT) return (char *)(uintptr_t)check->plan->graph->values[one->value].data + offset;
  return one->host == NULL ? NULL : one->host + offset;
}

static bool share_memory(const tm_plan_check *check, uint32_t a, uint32_t b) {
  const tm_plan_location *one = location_of(check, a), *other = location_of(check, b);
  if (one == other || (one->slot != TM_PLAN_NONE && one->slot == other->slot)) return true;
  const char *first = host_address(check, a), *second = host_address(check, b);
  if (first == NULL || second == NULL) return false;
  const tm_operand *x = &check->candidate->operands[a], *y = &check->candidate->operands[b];
  first -= tm_operand_bytes_below(x);
  second -= tm_operand_bytes_below(y);
  return first < second + y->byte_count && second < first + x->byte_count;
}

static bool is_written(const tm_plan_check *check, uint32_t input) {
  const uint32_t inputs = check->candidate->operation.input_count;
  bool found = false;
  for (uint32_t o = inputs; o < operand_count(check); o++) found |= share_memory(check, input, o);
  return found && check->candidate->operands[input].byte_count != 0;
}

static bool works_in_place(const tm_plan_check *check) {
  bool found = false;
  for (uint32_t i = 0; i < check->candidate->operation.input_count; i++) found |= is_written(check, i);
  return found;
}

static bool is_fetched(const tm_plan_check *check, uint32_t index) {
  const bool is_input = index < check->candidate->operation.input_count;
  return host_address(check, index) == NULL || (is_input && is_written(check, index));
}

/* What is fetched lies in host memory as long as it is looked at. */
static bool has_room(const tm_plan_check *check) {
  uint64_t bytes = 0;
  bool fits = true;
  for (uint32_t i = 0; i < operand_count(check); i++)
    if (is_fetched(check, i)) fits = fits && tm_checked_add(bytes, check->candidate->operands[i].byte_count, &bytes);
  return fits && (bytes == 0 || tm_plan_memory_has_room(check->plan, bytes));
}

static uint64_t fetch_ns(const tm_plan_check *check) {
  uint64_t ns = 0;
  for (uint32_t i = 0; i < operand_count(check); i++) {
    if (!is_fetched(check, i)) continue;
    ns = tm_cost_add(ns, tm_correction_copy_ns(check->plan->runner.table->market.correction, check->candidate->basis.link_out,
                                               check->candidate->operands[i].byte_count));
  }
  return ns;
}

/* What fails is the device's; a lack of scratch memory is noted, and only keeps it from being looked at. */
static tm_status fetch(tm_plan_check *check, uint32_t index, tm_error *error) {
  const tm_operand *operand = &check->candidate->operands[index];
  const tm_plan_location *one = location_of(check, index);
  const uint64_t below = tm_operand_bytes_below(operand);
  const char *host = host_address(check, index);
  check->blocks[index] = tm_scratch_take(check->plan->runner.scratch, tm_max_u64(1, operand->byte_count));
  check->lacks_room = check->blocks[index].memory == NULL;
  if (check->lacks_room) return TM_OK;
  check->pointers[index] = (char *)check->blocks[index].memory + below;
  if (host != NULL) memcpy(check->blocks[index].memory, host - below, (size_t)operand->byte_count);
  if (host != NULL || operand->byte_count == 0) return TM_OK;
  const uint64_t first = one->first_bytes + check->plan->program.offsets[operand_at(check, index)->value];
  return tm_device_download(&check->plan->program.queues[check->action->place].use, one->buffer, first - below,
                            check->blocks[index].memory, operand->byte_count, error);
}

static tm_status fetch_rest(tm_plan_check *check, tm_error *error) {
  for (uint32_t i = 0; i < operand_count(check) && !check->lacks_room; i++) {
    if (check->pointers[i] != NULL) continue;
    check->pointers[i] = host_address(check, i);
    if (check->pointers[i] == NULL) TM_TRY(fetch(check, i, error));
  }
  return TM_OK;
}

static bool can_afford(const tm_plan_check *check) {
  const tm_checked_run run = { check->candidate, &check->candidate->operation, check->pointers, 0, 0 };
  return has_room(check) && tm_sampled_check_can_afford(&run, fetch_ns(check));
}

tm_status tm_plan_check_begin(tm_plan_check *check, tm_plan *plan, const tm_plan_action *action, tm_error *error) {
  const tm_plan_step *step = &plan->program.steps[action->step];
  tm_plan_candidate *candidate = &plan->program.problem.placements[step->placement]->candidates[step->candidate];
  memset(check, 0, sizeof *check);
  if (!tm_sampled_check_is_for(candidate)) return TM_OK;
  check->plan = plan;
  check->action = action;
  check->candidate = candidate;
  check->is_in_place = works_in_place(check);
  check->is_affordable = check->is_in_place && can_afford(check);
  for (uint32_t i = 0; check->is_affordable && !check->lacks_room && i < candidate->operation.input_count; i++)
    if (is_written(check, i)) TM_TRY(fetch(check, i, error));
  return TM_OK;
}

tm_status tm_plan_check_end(tm_plan_check *check, uint64_t taken_ns, uint64_t run_count, tm_error *error) {
  if (check->candidate == NULL) return TM_OK;
  const tm_checked_run run = { check->candidate, &check->candidate->operation, check->pointers, taken_ns, run_count };
  tm_sampled_check_account(&run);
  if (!check->is_in_place) check->is_affordable = can_afford(check);
  if (!check->is_affordable || check->lacks_room) return TM_OK;
  TM_TRY(fetch_rest(check, error));
  return check->lacks_room ? TM_OK : tm_sampled_check_look(&check->plan->runner, &run, error);
}

void tm_plan_check_drop(const tm_plan_check *check) {
  if (check->candidate == NULL || check->plan->program.queues[check->action->place].use.is_abandoned) return;   /* it may still be written to */
  for (uint32_t i = 0; i < operand_count(check); i++)
    if (check->blocks[i].memory != NULL) tm_scratch_give(check->plan->runner.scratch, check->blocks[i]);
}
