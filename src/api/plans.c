/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as the application makes, runs and asks them; plans themselves are in src/execute. */
#include <string.h>

#include "api/plans.h"
#include "api/tensor.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/memory_limit.h"
#include "execute/careful_replay.h"
#include "execute/plan_digest.h"
#include "execute/plan_memory.h"
#include "execute/replay.h"
#include "plugin/reference.h"
#include "plugin/settings.h"
#include "tensor/shape.h"

#define USUAL_REPEATS 100u

_Static_assert(TM_PLAN_DIGEST_BYTES == TM_SHA256_BYTES, "a digest is one hash");

static tm_context *context_of(const tm_plan *plan) { return plan->graph->owner; }

/* ---- making ---- */

tm_status tm_plan_options_read(const tm_plan_options *options, tm_plan_options *out_options, tm_error *error) {
  *out_options = (tm_plan_options){ .struct_size = sizeof *out_options, .worst_numerics = TM_NUMERICS_DEFAULT };
  if (options != NULL) TM_TRY(tm_copy_in(options, "plan options", out_options, sizeof *out_options, error));
  TM_TRY(tm_expect_reserved(out_options->reserved, "plan options", error));
  if (out_options->on_failure > TM_ON_FAILURE_STRICT)
    return tm_fail(error, TM_ERROR_ARGUMENT, "plan options: unknown policy %u for failures", out_options->on_failure);
  if (out_options->worst_numerics > TM_NUMERICS_N4 && out_options->worst_numerics != TM_NUMERICS_DEFAULT)
    return tm_fail(error, TM_ERROR_ARGUMENT, "plan options: unknown numerics class %u; set it to TM_NUMERICS_DEFAULT",
                   out_options->worst_numerics);
  const uint32_t weights[] = { out_options->latency_permille, out_options->throughput_permille, out_options->memory_permille };
  for (uint32_t i = 0; i < sizeof weights / sizeof *weights; i++)
    if (weights[i] > 1000)
      return tm_fail(error, TM_ERROR_ARGUMENT, "plan options: a weight of %u per mille, at most 1000", weights[i]);
  if (out_options->repeats == 0) out_options->repeats = USUAL_REPEATS;
  return TM_OK;
}

static tm_status check_names(const char *const *names, uint32_t count, const char *what, tm_error *error) {
  if (count != 0 && names == NULL)
    return tm_fail(error, TM_ERROR_ARGUMENT, "plan options: %u %s counted, but not given", count, what);
  for (uint32_t i = 0; i < count; i++)
    if (names[i] == NULL) return tm_fail(error, TM_ERROR_ARGUMENT, "plan options: %s: number %u is NULL", what, i);
  return TM_OK;
}

/* As a context reads such lists. */
tm_status tm_plan_options_deny(const tm_context *context, const tm_plan_options *options, uint8_t *denied, tm_error *error) {
  const tm_context_options lists = {
    .struct_size = sizeof lists,
    .devices = options->devices,
    .excluded_devices = options->excluded_devices,
    .device_count = options->device_count,
    .excluded_device_count = options->excluded_device_count,
  };
  TM_TRY(check_names(options->devices, options->device_count, "devices", error));
  TM_TRY(check_names(options->excluded_devices, options->excluded_device_count, "excluded devices", error));
  TM_TRY(tm_settings_check_names(&lists, context->inventory, error));
  for (uint32_t i = 0; i < context->inventory->device_count; i++) {
    const tm_device_slot *device = context->inventory->devices[i];
    const bool is_last_resort = strcmp(device->backend->name, TM_REFERENCE_NAME) == 0;
    const bool is_excluded = tm_settings_excludes_by_name(&lists, device->backend->name) ||
                             tm_settings_excludes_by_name(&lists, device->name);
    const bool is_left_out = !is_last_resort && tm_settings_exclude_device(&lists, device->backend->name, device->name) != NULL;
    denied[i] = is_excluded || is_left_out;
  }
  return TM_OK;
}

tm_plan_policy tm_plan_options_policy(const tm_context *context, const tm_plan_options *options, const uint8_t *denied) {
  return (tm_plan_policy){
    .worst_numerics = options->worst_numerics != TM_NUMERICS_DEFAULT ? options->worst_numerics : context->worst_numerics,
    .run_to_run = options->run_to_run != 0,
    .repeats = options->repeats,
    .most_bytes = options->max_memory_bytes,
    .denied = denied,
    .latency_permille = options->latency_permille,
    .throughput_permille = options->throughput_permille,
    .memory_permille = options->memory_permille,
    .one_resource = options->one_resource != 0,
  };
}

static tm_status make(tm_graph *graph, const tm_plan_options *options, tm_plan_request *request, tm_plan *plan, tm_error *error) {
  tm_context *context = graph->owner;
  request->memory = &context->memory;
  request->graph = graph;
  request->runner = context->runner;
  request->waits_for_prepare = options->wait_for_prepare != 0;
  if (options->on_failure == TM_ON_FAILURE_STRICT) request->runner.is_strict = true;
  request->policy = tm_plan_options_policy(context, options, request->policy.denied);
  TM_TRY(tm_plan_init(plan, request, error));
  plan->bounces = tm_memory_calloc(plan->memory, graph->inputs.count + graph->output_count, sizeof *plan->bounces);
  if (plan->bounces != NULL) return TM_OK;
  tm_plan_deinit(plan);
  return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan");
}

static tm_status check_bound(const tm_graph *graph, tm_error *error) {
  const uint32_t unbound = tm_graph_unbound(graph);
  if (unbound == TM_GRAPH_NONE) return TM_OK;
  char name[TM_GRAPH_LABEL_CAPACITY];
  tm_graph_name_value(graph, unbound, name, sizeof name);
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s has no bytes: bind it first", name);
}

tm_status tm_plan_make(tm_graph *graph, const tm_plan_options *options,
                       tm_status (*choose)(void *choose_context, tm_graph_problem *problem, tm_memory *memory,
                                           tm_graph_choice *out_choice, tm_error *error),
                       void *choose_context, tm_plan **out_plan, tm_error *error) {
  tm_context *context = graph->owner;
  TM_TRY(check_bound(graph, error));
  tm_graph_seal(graph);
  const uint32_t device_count = context->inventory->device_count;
  uint8_t *denied = tm_memory_calloc(&context->memory, device_count, 1);
  tm_plan *plan = tm_memory_calloc(&context->memory, 1, sizeof *plan);
  tm_plan_request request = { .policy = { .denied = denied }, .choose = choose, .choose_context = choose_context };
  tm_status status = denied == NULL || plan == NULL ? tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan")
                                                    : tm_plan_options_deny(context, options, denied, error);
  if (status == TM_OK) status = make(graph, options, &request, plan, error);
  tm_memory_free(&context->memory, denied, device_count);
  if (status != TM_OK) tm_memory_free(&context->memory, plan, sizeof *plan);
  else *out_plan = plan;
  return tm_memory_name_limit(&context->memory, status, error);
}

tm_status tm_plan_create(tm_graph *graph, const tm_plan_options *options, tm_plan **out_plan, tm_error *error) {
  tm_plan_options known;
  TM_TRY(tm_plan_options_read(options, &known, error));
  return tm_plan_make(graph, &known, NULL, NULL, out_plan, error);
}

static uint64_t bounce_count(const tm_plan *plan) { return plan->graph->inputs.count + plan->graph->output_count; }

void tm_plan_destroy(tm_plan *plan) {
  if (plan == NULL) return;
  tm_memory *memory = plan->memory;
  for (uint64_t i = 0; i < bounce_count(plan); i++) tm_plan_memory_free(plan, plan->bounces[i].memory, plan->bounces[i].bytes);
  tm_memory_free(memory, plan->bounces, bounce_count(plan) * sizeof *plan->bounces);
  tm_plan_deinit(plan);
  tm_memory_free(memory, plan, sizeof *plan);
}

/* ---- inputs and outputs ---- */

static bool is_aligned(const tm_plan *plan, const void *pointer) {
  const uint32_t alignment = plan->alignment;
  return (uintptr_t)pointer % alignment == 0;
}

/* Where the first element lies in memory of the plan's own, made when first needed. */
static tm_status bounce(tm_plan *plan, uint64_t index, const tm_operand *operand, void **out_first, tm_error *error) {
  tm_plan_bounce *one = &plan->bounces[index];
  const uint64_t below = tm_operand_bytes_below(operand);
  uint64_t first;
  if (!tm_checked_round_up(below, plan->alignment, &first)) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for an input");
  if (one->memory == NULL) {
    one->bytes = first + operand->byte_count;
    one->memory = tm_memory_alloc(plan->memory, one->bytes, plan->alignment);
    if (one->memory == NULL)
      return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a copy of %llu bytes", (unsigned long long)one->bytes);
  }
  *out_first = (char *)one->memory + first;
  return TM_OK;
}

static tm_status check_like(const tm_plan *plan, const tm_tensor *tensor, const tm_operand *wanted, const char *what,
                            uint32_t index, tm_error *error) {
  if (tensor->context != context_of(plan)) return tm_fail(error, TM_ERROR_ARGUMENT, "%s %u is of another context", what, index);
  if (tensor->operand.format == wanted->format && tm_same_dims(&tensor->operand, wanted)) return TM_OK;
  char expected[128], found[128];
  tm_format_dims(wanted, expected, sizeof expected);
  tm_format_dims(&tensor->operand, found, sizeof found);
  return tm_fail(error, TM_ERROR_ARGUMENT, "%s %u: expected %s %s, found %s %s", what, index, tm_format_name(wanted->format),
                 expected, tm_format_name(tensor->operand.format), found);
}

static tm_status take_inputs(tm_plan *plan, tm_tensor *const *inputs, tm_error *error) {
  for (uint32_t i = 0; i < plan->graph->inputs.count; i++) {
    const tm_operand *wanted = &plan->graph->values[plan->graph->inputs.values[i]].operand;
    TM_TRY(check_like(plan, inputs[i], wanted, "input", i, error));
    const bool same = memcmp(inputs[i]->operand.strides_bytes, wanted->strides_bytes, sizeof wanted->strides_bytes) == 0;
    plan->inputs[i] = inputs[i]->data;
    if (same && is_aligned(plan, inputs[i]->data)) continue;
    TM_TRY(bounce(plan, i, wanted, &plan->inputs[i], error));
    tm_plan_move(&inputs[i]->operand, inputs[i]->data, wanted, plan->inputs[i]);
  }
  return TM_OK;
}

static tm_status output_operand(const tm_plan *plan, uint32_t index, tm_operand *out_operand, tm_error *error) {
  const tm_operand *value = &plan->graph->values[plan->graph->outputs[index].value].operand;
  return tm_operand_contiguous(value->format, value->rank, value->dims, out_operand, error);
}

/* What was not written in the last run may lie where a constant does. */
static tm_status check_beside_constants(const tm_plan *plan, const tm_tensor *output, uint32_t index, tm_error *error) {
  const char *begin = output->data - tm_operand_bytes_below(&output->operand), *end = begin + output->operand.byte_count;
  for (uint64_t i = 0; i < plan->graph->constants.count; i++) {
    const tm_value *constant = &plan->graph->values[plan->graph->constants.values[i]];
    const char *first = (const char *)constant->data - tm_operand_bytes_below(&constant->operand);
    if (begin >= first + constant->operand.byte_count || first >= end) continue;
    return tm_fail(error, TM_ERROR_ARGUMENT, "output %u overlaps constant '%s'", index, constant->name.data);
  }
  return TM_OK;
}

static tm_status take_outputs(tm_plan *plan, tm_tensor *const *outputs, tm_error *error) {
  for (uint32_t i = 0; i < plan->graph->output_count; i++) {
    tm_operand dense;
    TM_TRY(output_operand(plan, i, &dense, error));
    TM_TRY(check_like(plan, outputs[i], &dense, "output", i, error));
    if (plan->outputs[i] != outputs[i]->data) TM_TRY(check_beside_constants(plan, outputs[i], i, error));
    plan->outputs[i] = outputs[i]->data;
    const bool is_dense = (outputs[i]->operand.flags & TM_OPERAND_CONTIGUOUS) != 0;
    if (!is_dense || !is_aligned(plan, outputs[i]->data) || plan->writes_whole_units)
      TM_TRY(bounce(plan, plan->graph->inputs.count + i, &dense, &plan->outputs[i], error));
  }
  return TM_OK;
}

static tm_status give_outputs(const tm_plan *plan, tm_tensor *const *outputs, tm_error *error) {
  for (uint32_t i = 0; i < plan->graph->output_count; i++) {
    tm_operand dense;
    if (plan->outputs[i] == outputs[i]->data) continue;
    TM_TRY(output_operand(plan, i, &dense, error));
    tm_plan_move(&dense, plan->outputs[i], &outputs[i]->operand, outputs[i]->data);
  }
  return TM_OK;
}

/* ---- running ---- */

static tm_status check_constants(const tm_plan *plan, tm_error *error) {
  for (uint64_t i = 0; i < plan->graph->constants.count; i++) {
    tm_tensor *tensor = plan->graph->values[plan->graph->constants.values[i]].owner;
    TM_TRY(tm_files_check(&tensor, 1, error));
  }
  return TM_OK;
}

static void write_report(const tm_plan *plan, const tm_plan_outcome *outcome, tm_plan_report *report) {
  tm_plan_report filled = {
    .struct_size = sizeof filled,
    .replayed = outcome->was_plain,
    .retries = outcome->retries,
    .fell_back = outcome->fell_back,
    .rerun_count = outcome->rerun_count,
    .plan_count = (uint32_t)outcome->plan_count,
    .predicted_ns = plan->program.total_ns,
    .measured_ns = outcome->measured_ns,
    .query_count = outcome->query_count,
    .prepare_count = outcome->prepare_count,
  };
  memcpy(filled.note, outcome->note, sizeof filled.note);
  tm_copy_out(report, &filled, sizeof filled);
}

tm_status tm_plan_run(tm_plan *plan, tm_tensor *const *inputs, uint32_t input_count, tm_tensor *const *outputs,
                      uint32_t output_count, tm_plan_report *report, tm_error *error) {
  const tm_graph *graph = plan->graph;
  if (input_count != graph->inputs.count || output_count != graph->output_count)
    return tm_fail(error, TM_ERROR_ARGUMENT, "the graph has %llu inputs and %u outputs, and %u and %u were given",
                   (unsigned long long)graph->inputs.count, graph->output_count, input_count, output_count);
  TM_TRY(tm_tensors_check(inputs, input_count, "input", error));
  TM_TRY(tm_tensors_check(outputs, output_count, "output", error));
  TM_TRY(tm_outputs_check(inputs, input_count, outputs, output_count, error));
  TM_TRY(tm_memory_name_limit(plan->memory, take_inputs(plan, inputs, error), error));
  TM_TRY(tm_memory_name_limit(plan->memory, take_outputs(plan, outputs, error), error));
  tm_plan_outcome outcome;
  TM_TRY(tm_memory_name_limit(plan->memory, tm_plan_replay(plan, &outcome, error), error));
  TM_TRY(give_outputs(plan, outputs, error));
  TM_TRY(tm_files_check(inputs, input_count, error));
  TM_TRY(check_constants(plan, error));
  if (report != NULL) write_report(plan, &outcome, report);
  return TM_OK;
}

/* ---- states ---- */

static tm_status find_state(tm_plan *plan, uint32_t value, tm_plan_state **out_state, tm_error *error) {
  const tm_graph *graph = plan->graph;
  if (value >= graph->value_count || graph->values[value].kind != TM_GRAPH_STATE)
    return tm_fail(error, TM_ERROR_ARGUMENT, "value %u is no state of the graph", value);
  *out_state = &plan->states[graph->values[value].index];
  return TM_OK;
}

tm_status tm_plan_state_read(tm_plan *plan, uint32_t state, tm_tensor *tensor, tm_error *error) {
  tm_plan_state *one = NULL;
  TM_TRY(find_state(plan, state, &one, error));
  TM_TRY(tm_tensors_check(&tensor, 1, "tensor", error));
  TM_TRY(check_like(plan, tensor, &plan->graph->values[state].operand, "state", state, error));
  TM_TRY(tm_outputs_check(NULL, 0, &tensor, 1, error));
  tm_plan_states_take_in(plan);         /* the next run puts them where its plan wants them */
  if (one->health == TM_STATE_LOST) {
    char name[TM_GRAPH_LABEL_CAPACITY];
    tm_graph_name_value(plan->graph, state, name, sizeof name);
    return tm_fail(error, TM_ERROR_DEVICE_LOST, "%s is lost", name);
  }
  tm_plan_move(&plan->graph->values[state].operand, one->mirror, &tensor->operand, tensor->data);
  return TM_OK;
}

tm_status tm_plan_state_write(tm_plan *plan, uint32_t state, tm_tensor *tensor, tm_error *error) {
  tm_plan_state *one = NULL;
  TM_TRY(find_state(plan, state, &one, error));
  TM_TRY(tm_tensors_check(&tensor, 1, "tensor", error));
  TM_TRY(check_like(plan, tensor, &plan->graph->values[state].operand, "state", state, error));
  tm_plan_states_take_in(plan);         /* the next run puts them where its plan wants them */
  TM_TRY(tm_plan_state_ready(plan, one, error));
  tm_plan_move(&tensor->operand, tensor->data, &plan->graph->values[state].operand, one->mirror);
  return TM_OK;
}

static tm_status reset(tm_plan *plan, tm_plan_state *state, tm_error *error) {
  TM_TRY(tm_plan_state_ready(plan, state, error));
  memset(state->mirror, 0, (size_t)state->bytes);
  return TM_OK;
}

tm_status tm_plan_state_reset(tm_plan *plan, uint32_t state, tm_error *error) {
  tm_plan_state *one = NULL;
  if (state != TM_NO_VALUE) TM_TRY(find_state(plan, state, &one, error));
  tm_plan_states_take_in(plan);         /* the next run puts them where its plan wants them */
  if (one != NULL) return reset(plan, one, error);
  for (uint64_t i = 0; i < plan->graph->states.count; i++) TM_TRY(reset(plan, &plan->states[i], error));
  return TM_OK;
}

/* ---- what it is ---- */

static uint32_t count_transfers(const tm_plan_program *program) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < program->action_count; i++)
    count += program->actions[i].kind == TM_ACTION_UPLOAD || program->actions[i].kind == TM_ACTION_DOWNLOAD;
  return count;
}

void tm_plan_describe(const tm_plan *plan, tm_plan_description *out_description) {
  const tm_plan_description description = {
    .struct_size = sizeof description,
    .step_count = plan->program.step_count,
    .transfer_count = count_transfers(&plan->program),
    .memory_count = plan->program.problem.solver.memory_count,
    .replays = plan->program.is_bound,
    .preparing = atomic_load(&plan->is_preparing),
    .exact = plan->program.is_exact,
    .overlaps = plan->program.overlaps != 0 && plan->program.total_ns != plan->program.additive_ns,
    .predicted_ns = plan->program.total_ns,
    .bound_ns = plan->program.bound_ns,
    .additive_ns = plan->program.additive_ns,
    .run_count = plan->counters.runs,
    .replay_count = plan->counters.plain_runs,
    .plan_count = plan->counters.plans,
    .failure_count = plan->counters.failures,
  };
  tm_copy_out(out_description, &description, sizeof description);
}

tm_status tm_plan_step_describe(const tm_plan *plan, uint32_t step, tm_plan_step_description *out_description) {
  if (step >= plan->program.step_count) return TM_END;
  const tm_plan_step *one = &plan->program.steps[step];
  const tm_plan_candidate *candidates = plan->program.problem.placements[one->placement]->candidates;
  const tm_plan_candidate *chosen = &candidates[one->candidate];
  const bool has_alternate = one->alternate != TM_PLAN_NONE;
  const tm_plan_step_description description = {
    .struct_size = sizeof description,
    .node = one->node,
    .device = chosen->device->index,
    .alternate = has_alternate ? candidates[one->alternate].device->index : TM_ANY_DEVICE,
    .device_name = chosen->device->name,
    .alternate_name = has_alternate ? candidates[one->alternate].device->name : "",
    .lowering = chosen->lowering == NULL ? "" : chosen->lowering->text,
    .predicted_ns = one->predicted_ns,
    .alternate_ns = one->alternate_ns,
    .in_place = one->is_direct,
    .prepared = atomic_load(&chosen->is_prepared) || (chosen->lowering != NULL && chosen->lowering->has_inner),
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

tm_status tm_plan_memory_describe(const tm_plan *plan, uint32_t memory, tm_plan_memory_description *out_description) {
  const tm_graph_problem *problem = &plan->program.problem;
  if (memory >= problem->solver.memory_count) return TM_END;
  const tm_device_slot *device = problem->memories[memory];
  const tm_plan_memory_description description = {
    .struct_size = sizeof description,
    .device = device == NULL ? TM_ANY_DEVICE : device->index,
    .name = device == NULL ? "host" : device->name,
    .bytes = plan->program.memory_bytes[memory],
  };
  tm_copy_out(out_description, &description, sizeof description);
  return TM_OK;
}

void tm_plan_digest(const tm_plan *plan, uint8_t out_digest[TM_PLAN_DIGEST_BYTES]) {
  tm_plan_digest_make(plan, out_digest);
}
