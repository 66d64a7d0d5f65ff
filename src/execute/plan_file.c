/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_file.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "execute/plan_digest.h"

#define HEAD "tensormorph plan"
#define FORM 3u
#define LONGEST_TEXT 4096u
#define LEAST_STEP_BYTES 12u    /* four fields of at least three bytes */

/* ---- writing ---- */

static const tm_plan_candidate *candidate_of(const tm_plan_program *program, uint32_t step) {
  const tm_plan_step *one = &program->steps[step];
  return &program->problem.placements[one->placement]->candidates[one->candidate];
}

/* Places that are in use, numbered as they come: *out_numbers is [place]. */
static uint32_t number_places(const tm_plan_program *program, uint32_t *numbers) {
  const tm_graph_problem *problem = &program->problem;
  uint32_t count = 0;
  for (uint32_t i = 0; i < problem->place_count; i++) {
    bool is_used = program->state_memory != TM_HOST_SPACE && problem->places[i].memory == program->state_memory;
    for (uint32_t k = 0; k < program->step_count; k++) is_used |= candidate_of(program, k)->device == problem->places[i].device;
    numbers[i] = is_used ? count++ : TM_PLAN_NONE;
  }
  return count;
}

static void write_devices(const tm_plan_program *program, const uint32_t *numbers, uint32_t count, tm_field_writer *writer) {
  tm_field_write_number(writer, count);
  for (uint32_t i = 0; i < program->problem.place_count; i++) {
    if (numbers[i] == TM_PLAN_NONE) continue;
    const tm_device_slot *device = program->problem.places[i].device;
    tm_field_write_text(writer, device->name);
    tm_field_write_text(writer, device->backend->name);
    tm_field_write_text(writer, device->backend->build_id);
    tm_field_write(writer, device->info.uuid.bytes, sizeof device->info.uuid.bytes);
  }
}

static void write_states(const tm_plan_program *program, const uint32_t *numbers, tm_field_writer *writer) {
  uint32_t number = 0;
  for (uint32_t i = 0; i < program->problem.place_count; i++)
    if (program->state_memory != TM_HOST_SPACE && program->problem.places[i].memory == program->state_memory)
      number = numbers[i] + 1;
  tm_field_write_number(writer, number);
}

void tm_plan_file_write(const tm_plan *plan, tm_field_writer *writer) {
  const tm_plan_program *program = &plan->program;
  uint8_t graph[TM_SHA256_BYTES], digest[TM_SHA256_BYTES];
  uint32_t *numbers = tm_memory_calloc(plan->memory, program->problem.place_count, sizeof *numbers);
  if (numbers == NULL) {
    writer->failed = true;
    return;
  }
  tm_plan_graph_digest(plan->graph, graph);
  tm_field_write_text(writer, HEAD);
  tm_field_write_number(writer, FORM);
  tm_field_write(writer, graph, sizeof graph);
  tm_plan_digest_make(plan, digest);
  tm_field_write(writer, digest, sizeof digest);
  const uint64_t policy[] = { plan->policy.worst_numerics, plan->policy.run_to_run, plan->policy.one_resource, plan->policy.repeats,
                              plan->policy.most_bytes };
  for (uint32_t i = 0; i < sizeof policy / sizeof *policy; i++) tm_field_write_number(writer, policy[i]);
  write_devices(program, numbers, number_places(program, numbers), writer);
  write_states(program, numbers, writer);
  tm_field_write_number(writer, program->step_count);
  for (uint32_t i = 0; i < program->step_count; i++) {
    const tm_plan_candidate *candidate = candidate_of(program, i);
    tm_field_write_number(writer, program->steps[i].node);
    tm_field_write_number(writer, numbers[program->problem.place_of_device[candidate->device->index]]);
    tm_field_write_number(writer, program->steps[i].is_direct);
    tm_field_write_text(writer, candidate->lowering == NULL ? "" : candidate->lowering->text);
  }
  tm_memory_free(plan->memory, numbers, program->problem.place_count * sizeof *numbers);
}

/* ---- reading ---- */

static bool read_bytes(tm_field_reader *reader, void *out_bytes, uint64_t count) {
  const tm_string field = tm_field_read(reader);
  if (field.length != count) return false;
  memcpy(out_bytes, field.data, (size_t)count);
  return true;
}

static bool read_text(tm_field_reader *reader, tm_string *out_text) {
  *out_text = tm_field_read(reader);
  return out_text->length <= LONGEST_TEXT;
}

static tm_status damaged(const tm_field_reader *reader, const char *what, tm_error *error) {
  return tm_fail(error, TM_ERROR_CORRUPT, "a plan's file: %s near byte %llu of %llu", what, (unsigned long long)reader->position,
                 (unsigned long long)reader->length);
}

static tm_status read_head(tm_field_reader *reader, tm_plan_file *file, tm_error *error) {
  if (!tm_field_is(tm_field_read(reader), HEAD)) return damaged(reader, "it does not begin as one", error);
  if (tm_field_read_number(reader) != FORM) return damaged(reader, "a form that this version does not know", error);
  if (!read_bytes(reader, file->graph_digest, sizeof file->graph_digest) ||
      !read_bytes(reader, file->plan_digest, sizeof file->plan_digest))
    return damaged(reader, "no digest", error);
  file->worst_numerics = tm_field_read_count(reader, TM_NUMERICS_DEFAULT);
  file->run_to_run = tm_field_read_count(reader, 1);
  file->one_resource = tm_field_read_count(reader, 1);
  file->repeats = tm_field_read_number(reader);
  file->most_bytes = tm_field_read_number(reader);
  const bool is_class = file->worst_numerics <= TM_NUMERICS_N4 || file->worst_numerics == TM_NUMERICS_DEFAULT;
  return !reader->failed && is_class && file->repeats != 0 ? TM_OK : damaged(reader, "no policy", error);
}

/* A count of things that take at least so many bytes each cannot be more than the rest accounts for. */
static uint32_t read_most(tm_field_reader *reader, uint64_t least_bytes) {
  const uint64_t most = (reader->length - reader->position) / least_bytes;
  return tm_field_read_count(reader, most < TM_PLAN_NONE ? (uint32_t)most : TM_PLAN_NONE - 1);
}

static tm_status read_devices(tm_field_reader *reader, tm_plan_file *file, tm_error *error) {
  const uint32_t count = read_most(reader, 4 * 3);
  if (reader->failed) return damaged(reader, "no number of devices", error);
  file->devices = tm_memory_calloc(file->memory, count, sizeof *file->devices);
  if (file->devices == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan's file");
  file->device_count = count;
  for (uint32_t i = 0; i < count; i++) {
    tm_plan_file_device *one = &file->devices[i];
    const bool is_sound = read_text(reader, &one->name) && read_text(reader, &one->backend) && read_text(reader, &one->build_id) &&
                          read_bytes(reader, one->uuid.bytes, sizeof one->uuid.bytes);
    if (!is_sound || reader->failed) return damaged(reader, "no device", error);
  }
  const uint32_t number = tm_field_read_count(reader, count);
  file->state_device = number == 0 ? TM_PLAN_NONE : number - 1;
  return reader->failed ? damaged(reader, "no place for states", error) : TM_OK;
}

static tm_status read_steps(tm_field_reader *reader, tm_plan_file *file, tm_error *error) {
  const uint32_t count = read_most(reader, LEAST_STEP_BYTES);
  if (reader->failed) return damaged(reader, "no number of steps", error);
  file->steps = tm_memory_calloc(file->memory, count, sizeof *file->steps);
  if (file->steps == NULL) return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan's file");
  file->step_count = count;
  for (uint32_t i = 0; i < count; i++) {
    tm_plan_file_step *one = &file->steps[i];
    if (file->device_count == 0) return damaged(reader, "a step without a device", error);
    one->node = tm_field_read_count(reader, count - 1);
    one->device = tm_field_read_count(reader, file->device_count - 1);
    one->is_direct = tm_field_read_count(reader, 1);
    if (!read_text(reader, &one->lowering) || reader->failed) return damaged(reader, "no step", error);
  }
  return tm_field_at_end(reader) ? TM_OK : damaged(reader, "something after the last step", error);
}

tm_status tm_plan_file_read(tm_memory *memory, const char *bytes, uint64_t length, tm_plan_file *out_file, tm_error *error) {
  tm_field_reader reader;
  tm_plan_file file = { .memory = memory };
  tm_field_reader_init(&reader, bytes, length);
  tm_status status = read_head(&reader, &file, error);
  if (status == TM_OK) status = read_devices(&reader, &file, error);
  if (status == TM_OK) status = read_steps(&reader, &file, error);
  if (status == TM_OK) *out_file = file;
  else tm_plan_file_deinit(&file);
  return status;
}

void tm_plan_file_deinit(tm_plan_file *file) {
  tm_memory_free(file->memory, file->devices, file->device_count * sizeof *file->devices);
  tm_memory_free(file->memory, file->steps, file->step_count * sizeof *file->steps);
  memset(file, 0, sizeof *file);
}

/* ---- choosing ---- */

/* A text of a file in a message. */
static const char *say(tm_string text, char *out_text, uint64_t capacity) {
  (void)tm_text_escape(text.length == 0 ? "" : text.data, text.length, out_text, capacity);
  return out_text;
}

static tm_status find_device(const tm_plan_file_device *wanted, const tm_graph_problem *problem, uint32_t *out_place,
                             tm_error *error) {
  char name[100], build[100];
  (void)say(wanted->name, name, sizeof name);
  for (uint32_t i = 0; i < problem->place_count; i++) {
    const tm_device_slot *device = problem->places[i].device;
    if (memcmp(device->info.uuid.bytes, wanted->uuid.bytes, sizeof wanted->uuid.bytes) != 0) continue;
    if (!tm_field_is(wanted->build_id, device->backend->build_id))
      return tm_fail(error, TM_ERROR_NO_DEVICE, "the plan was made for %s with build '%s', and here it is build '%s'", name,
                     say(wanted->build_id, build, sizeof build), device->backend->build_id);
    *out_place = i;
    return TM_OK;
  }
  return tm_fail(error, TM_ERROR_NO_DEVICE, "the plan was made for %s of backend '%s', and there is no such device here", name,
                 say(wanted->backend, build, sizeof build));
}

static bool is_lowered_so(const tm_plan_candidate *candidate, tm_string lowering) {
  return tm_field_is(lowering, candidate->lowering == NULL ? "" : candidate->lowering->text);
}

static tm_status find_label(const tm_graph_problem *problem, uint32_t node, const tm_plan_file_step *wanted,
                            const tm_device_slot *device, uint32_t *out_label, tm_error *error) {
  const tm_solver_op *op = &problem->solver.ops[node];
  for (uint32_t label = op->first_label; label < op->first_label + op->label_count; label++) {
    const tm_plan_candidate *candidate = tm_graph_problem_candidate(problem, node, label);
    if (candidate->device != device || problem->labels[label].is_direct != wanted->is_direct) continue;
    if (!is_lowered_so(candidate, wanted->lowering)) continue;
    *out_label = label;
    return TM_OK;
  }
  char name[TM_GRAPH_LABEL_CAPACITY];
  const tm_placement *placement = problem->placements[problem->node_placements[node]];
  const char *reason = "not in the same way any more";
  for (uint32_t i = 0; i < placement->candidate_count; i++) {
    const char *own = tm_graph_problem_refusal(problem, &placement->candidates[i]);
    if (placement->candidates[i].device == device && own[0] != '\0') reason = own;
  }
  tm_graph_name_node(problem->graph, node, name, sizeof name);
  return tm_fail(error, TM_ERROR_NO_DEVICE, "the plan has %s on %s, which cannot run it so here: %s", name, device->name, reason);
}

/* The nodes that have not run when a step's turn comes may not be among those that it needs. */
static tm_status check_order(const tm_plan_file *file, const tm_graph_problem *problem, uint8_t *is_done, tm_error *error) {
  const tm_solver_problem *solver = &problem->solver;
  for (uint32_t i = 0; i < file->step_count; i++) {
    const uint32_t node = file->steps[i].node;
    const tm_solver_op *op = &solver->ops[node];
    if (is_done[node]) return tm_fail(error, TM_ERROR_CORRUPT, "a plan's file: step %u is node %u, as another one is", i, node);
    for (uint32_t k = op->first_input; k < op->first_input + op->input_count; k++) {
      const uint32_t producer = solver->values[solver->inputs[k]].producer;
      if (producer != TM_SOLVER_NONE && !is_done[producer])
        return tm_fail(error, TM_ERROR_CORRUPT, "a plan's file: step %u, node %u, comes before node %u, which it needs", i, node,
                       producer);
    }
    is_done[node] = 1;
  }
  return TM_OK;
}

static tm_status find_all(const tm_plan_file *file, const tm_graph_problem *problem, uint32_t *places, uint32_t *labels,
                          uint32_t *order, tm_error *error) {
  for (uint32_t i = 0; i < file->device_count; i++) TM_TRY(find_device(&file->devices[i], problem, &places[i], error));
  for (uint32_t i = 0; i < file->step_count; i++) {
    const tm_plan_file_step *step = &file->steps[i];
    order[i] = step->node;
    TM_TRY(find_label(problem, step->node, step, problem->places[places[step->device]].device, &labels[step->node], error));
  }
  return TM_OK;
}

tm_status tm_plan_file_choose(void *choose_context, tm_graph_problem *problem, tm_memory *memory, tm_graph_choice *out_choice,
                              tm_error *error) {
  const tm_plan_file *file = choose_context;
  if (file->step_count != problem->graph->node_count) return tm_fail(error, TM_ERROR_ARGUMENT, "the plan is of another graph");
  uint32_t *places = tm_arena_calloc(&problem->arena, file->device_count, sizeof *places);
  uint32_t *labels = tm_arena_calloc(&problem->arena, file->step_count, sizeof *labels);
  uint32_t *order = tm_arena_calloc(&problem->arena, file->step_count, sizeof *order);
  uint8_t *is_done = tm_arena_calloc(&problem->arena, file->step_count, sizeof *is_done);
  if (places == NULL || labels == NULL || order == NULL || is_done == NULL)
    return tm_fail(error, TM_ERROR_NO_MEMORY, "no memory for a plan");
  TM_TRY(check_order(file, problem, is_done, error));
  TM_TRY(find_all(file, problem, places, labels, order, error));
  const uint32_t home = file->state_device == TM_PLAN_NONE ? TM_HOST_SPACE : problem->places[places[file->state_device]].memory;
  TM_TRY(tm_graph_choice_pin(problem, memory, labels, order, home, out_choice, error));
  if (file->one_resource != 0) tm_graph_choice_add_up(out_choice);
  return TM_OK;
}
