/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/plan_loop.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "execute/careful_replay.h"
#include "execute/plan_check.h"
#include "plugin/host_services.h"
#include "tensor/shape.h"

typedef struct loop {
  tm_plan         *plan;
  tm_plan_program *program;
  tm_error        *error;
  tm_plan_outcome *outcome;
  uint32_t         index;       /* of the action */
  uint32_t         begun_to;    /* one past the last action that a device was asked for and need not have done at once */
  uint32_t         blamed;      /* action whose work failed; TM_PLAN_NONE: nobody knows */
} loop;

/* ---- queues ---- */

/* Launches name the queue that they were given the last time; only if it is another one they are told. */
static void name_queue(const loop *l, uint32_t place, uint32_t queue) {
  for (uint32_t i = 0; i < l->program->action_count; i++) {
    const tm_plan_action *action = &l->program->actions[i];
    const bool is_launch = action->kind == TM_ACTION_LAUNCH || action->kind == TM_ACTION_ENQUEUE;
    if (is_launch && action->place == place) l->program->launches[action->to].queue = queue;
  }
}

/* In the order of places, so that two plans never wait for each other. */
static void take_queues(const loop *l) {
  for (uint32_t i = 0; i < l->program->problem.place_count; i++) {
    tm_plan_queue *queue = &l->program->queues[i];
    if (!queue->takes_queue) continue;
    queue->use = tm_device_use_begin(l->program->problem.places[i].device, NULL);
    queue->is_held = 1;
    if (queue->use.queue != queue->queue) name_queue(l, i, queue->use.queue);
    queue->queue = queue->use.queue;
  }
}

static void give_queues(const loop *l) {
  for (uint32_t i = 0; i < l->program->problem.place_count; i++) {
    tm_plan_queue *queue = &l->program->queues[i];
    if (!queue->is_held) continue;
    tm_device_use_end(&queue->use);
    queue->is_held = 0;
  }
}

/* ---- actions ---- */

static const tm_plan_candidate *candidate_of(const loop *l, const tm_plan_action *action) {
  const tm_plan_step *step = &l->program->steps[action->step];
  return &l->program->problem.placements[step->placement]->candidates[step->candidate];
}

static void note_enqueued(const loop *l, tm_plan_queue *queue, const tm_ticket *ticket, uint64_t expected_ns) {
  l->program->tickets[l->index] = ticket->value;
  queue->enqueued_to = l->index + 1;
  queue->expected_ns += expected_ns;
}

static tm_status enqueue(loop *l, const tm_plan_action *action) {
  tm_plan_queue *queue = &l->program->queues[action->place];
  tm_ticket ticket = { 0, 0, 0 };
  queue->use.expected_ns = candidate_of(l, action)->answer.cost_ns;
  l->begun_to = l->index + 1;
  TM_TRY(tm_device_enqueue(&queue->use, &l->program->launches[action->to], &ticket, l->error));
  note_enqueued(l, queue, &ticket, queue->use.expected_ns);
  return TM_OK;
}

/* The application's own memory, that no stage stands for. */
static bool is_given(const loop *l, uint32_t location) {
  const tm_plan_location *one = &l->program->locations[location];
  return (one->kind == TM_LOCATION_INPUT || one->kind == TM_LOCATION_OUTPUT) && !one->is_staged;
}

/* One past the last copy from the application's memory that is not known to be done; 0: none. */
static uint32_t find_reading(const loop *l, uint32_t place, uint32_t to) {
  for (uint32_t i = to; i > l->program->queues[place].done_to; i--) {
    const tm_plan_action *action = &l->program->actions[i - 1];
    if (action->place == place && action->kind == TM_ACTION_UPLOAD && is_given(l, action->from)) return i;
  }
  return 0;
}

/* A ticket of value 0 was complete at once, and what came before it need not be. */
static tm_status wait_to(loop *l, uint32_t place, uint32_t to) {
  tm_plan_queue *queue = &l->program->queues[place];
  tm_ticket last = { .queue = queue->use.queue };
  uint64_t first = 0, failed;
  for (uint32_t i = to; i > queue->done_to; i--) {
    if (l->program->actions[i - 1].place != place || l->program->tickets[i - 1] == 0 ||
        l->program->actions[i - 1].kind == TM_ACTION_WAIT)
      continue;
    first = l->program->tickets[i - 1];
    if (last.value == 0) last.value = first;
  }
  const tm_status status = tm_device_finish(&queue->use, &last, first, queue->expected_ns, &failed, l->error);
  for (uint32_t i = queue->done_to; status != TM_OK && i < to && failed != 0; i++)
    if (l->program->actions[i].place == place && l->program->tickets[i] == failed) l->blamed = i;
  queue->has_failed = status != TM_OK;
  TM_TRY(status);
  queue->done_to = to;
  if (queue->enqueued_to <= to) queue->expected_ns = 0;
  return TM_OK;
}

/* Copies of the application's memory come first: should what follows hang, they are known to be done. */
static tm_status wait(loop *l, uint32_t place, uint32_t to) {
  const uint32_t reading = find_reading(l, place, to);
  if (reading != 0 && reading != to) TM_TRY(wait_to(l, place, reading));
  return wait_to(l, place, to);
}

/* Likewise nothing that may hang comes before a copy to the application's memory. */
static tm_status transfer(loop *l, const tm_plan_action *action) {
  const bool is_up = action->kind == TM_ACTION_UPLOAD;
  const tm_plan_location *host = &l->program->locations[is_up ? action->from : action->to];
  const tm_plan_location *device = &l->program->locations[is_up ? action->to : action->from];
  const tm_operand *operand = &l->plan->graph->values[action->value].operand;
  if (operand->byte_count == 0) return TM_OK;
  if (!is_up && is_given(l, action->to)) TM_TRY(wait(l, action->place, l->index));
  tm_plan_queue *queue = &l->program->queues[action->place];
  const uint64_t offset = l->program->offsets[action->value], below = tm_operand_bytes_below(operand);
  const uint64_t at = device->first_bytes + offset - below;
  const uint64_t host_offset = host->kind == TM_LOCATION_NEXT ? 0 : offset;
  tm_transfer what = { .struct_size = sizeof what, .queue = queue->use.queue, .host = host->host + host_offset - below,
                       .bytes = operand->byte_count };
  tm_ticket ticket = { 0, 0, 0 };
  l->begun_to = l->index + 1;
  if (is_up) {
    what.destination = device->buffer;
    what.destination_offset = at;
    TM_TRY(tm_device_enqueue_upload(&queue->use, &what, &ticket, l->error));
  } else {
    what.source = device->buffer;
    what.source_offset = at;
    TM_TRY(tm_device_enqueue_download(&queue->use, &what, &ticket, l->error));
  }
  note_enqueued(l, queue, &ticket, operand->byte_count);
  return TM_OK;
}

static char *host_of(const loop *l, uint32_t location, uint32_t value) {
  const tm_plan_location *one = &l->program->locations[location];
  return one->host + (one->kind == TM_LOCATION_NEXT ? 0 : l->program->offsets[value]);
}

static tm_status move(const loop *l, const tm_plan_action *action) {
  const tm_value *from = &l->plan->graph->values[action->value];
  const char *source = host_of(l, action->from, action->value);
  if (action->target != TM_PLAN_NONE) {
    tm_plan_move(&from->operand, source, &l->plan->graph->values[action->target].operand, l->program->locations[action->to].host);
    return TM_OK;
  }
  tm_operand dense;
  TM_TRY(tm_operand_contiguous(from->operand.format, from->operand.rank, from->operand.dims, &dense, l->error));
  tm_plan_move(&from->operand, source, &dense, l->plan->outputs[action->output]);
  return TM_OK;
}

/* Whoever runs it takes queues of its own, so nobody may be waiting for one that is held here. */
static tm_status run_carefully(const loop *l, const tm_plan_action *action) {
  const tm_plan_step *step = &l->program->steps[action->step];
  tm_placement *placement = l->program->problem.placements[step->placement];
  void *pointers[TM_MAX_OPERANDS];
  uint64_t origins[TM_MAX_OPERANDS];
  tm_run_outcome outcome;
  const uint32_t count = placement->request.input_count + placement->request.output_count;
  for (uint32_t i = 0; i < count; i++) {
    const tm_plan_operand *operand = &l->program->operands[action->from + i];
    pointers[i] = host_of(l, operand->location, operand->value);
    origins[i] = l->plan->graph->values[l->plan->graph->values[operand->value].base].origin;
  }
  give_queues(l);
  const tm_status status =
      tm_runner_run_candidate(&l->plan->runner, placement, step->candidate, pointers, origins, &outcome, l->error);
  take_queues(l);
  TM_TRY(status);
  tm_plan_outcome_add(l->outcome, &outcome);
  if (outcome.retries != 0) l->plan->must_replace = 1;
  return TM_OK;
}

static tm_status act(loop *l, const tm_plan_action *action) {
  switch (action->kind) {
    case TM_ACTION_ENQUEUE: return enqueue(l, action);
    case TM_ACTION_UPLOAD:
    case TM_ACTION_DOWNLOAD: return transfer(l, action);
    case TM_ACTION_WAIT: return wait(l, action->place, action->from + 1);
    case TM_ACTION_MOVE: return move(l, action);
    default: return run_carefully(l, action);
  }
}

/* Launches in a row, of one device.  Afterwards index is that of the last, or of the one that failed. */
static inline tm_status launch_row(loop *l, const tm_plan_action *action, uint32_t count) {
  const tm_plan_queue *queue = &l->program->queues[action->place];
  const tm_launch *const first = &l->program->launches[action->to], *one = first;
  tm_ticket ticket = { 0, 0, 0 };
  tm_status status = queue->launch(queue->device, one, &ticket);
  while (status == TM_OK && ++one < first + count) status = queue->launch(queue->device, one, &ticket);
  l->index += (uint32_t)(one - first) - (one == first + count);
  return status;
}

/* ---- the loops ---- */

static void begin(loop *l) {
  for (uint32_t i = 0; i < l->program->problem.place_count; i++) {
    tm_plan_queue *queue = &l->program->queues[i];
    queue->done_to = queue->enqueued_to = queue->has_failed = 0;
    queue->expected_ns = 0;
  }
  take_queues(l);
}

static void count_launches(const loop *l) {
  for (uint32_t i = 0; i < l->program->problem.place_count; i++)
    if (l->program->queues[i].launch_count != 0)
      atomic_fetch_add_explicit(&l->program->problem.places[i].device->launch_count, l->program->queues[i].launch_count,
                                memory_order_relaxed);
}

/* Whether work that may never end uses what the application gave. */
static bool holds_given(const loop *l, uint32_t place) {
  const tm_plan_queue *queue = &l->program->queues[place];
  for (uint32_t i = queue->done_to; i < l->begun_to; i++) {
    const tm_plan_action *action = &l->program->actions[i];
    if (action->place != place || action->kind == TM_ACTION_WAIT) continue;
    const uint32_t count = action->step == TM_PLAN_NONE ? 0 : candidate_of(l, action)->operation.input_count +
                                                                  candidate_of(l, action)->operation.output_count;
    for (uint32_t k = 0; k < count; k++)
      if (is_given(l, l->program->operands[action->from + k].location)) return true;
    if (action->step == TM_PLAN_NONE && (is_given(l, action->from) || is_given(l, action->to))) return true;
  }
  return false;
}

/* Other devices finish what they have; what they made counts. */
static void end(loop *l, tm_status status, tm_loop_failure *failure) {
  failure->action = l->index;
  failure->status = status;
  failure->blamed = l->blamed == TM_PLAN_NONE ? l->index : l->blamed;
  for (uint32_t i = 0; status != TM_OK && i < l->program->problem.place_count; i++) {
    tm_plan_queue *queue = &l->program->queues[i];
    tm_error unheard = TM_ERROR_INIT;
    l->error = &unheard;
    const bool is_pending = queue->is_held && !queue->has_failed && queue->enqueued_to > queue->done_to;
    if (is_pending && !queue->use.is_abandoned) (void)wait(l, i, queue->enqueued_to);
    if (!queue->is_held || !queue->use.is_abandoned) continue;
    failure->is_abandoned = 1;
    if (holds_given(l, i)) failure->is_held = 1;
  }
  give_queues(l);
  count_launches(l);
}

static void begin_failure(tm_loop_failure *failure) {
  failure->is_held = failure->is_abandoned = 0;
  failure->error.struct_size = sizeof failure->error;
  failure->error.text[0] = '\0';
}

tm_status tm_plan_loop_plain(tm_plan *plan, tm_plan_outcome *outcome, tm_loop_failure *failure) {
  begin_failure(failure);
  loop l = { .plan = plan, .program = &plan->program, .error = &failure->error, .outcome = outcome,
             .blamed = TM_PLAN_NONE };
  tm_call_frame frame;
  tm_status status = TM_OK;
  begin(&l);
  tm_call_enter(&frame, &failure->error);
  for (; l.index < l.program->action_count; l.index++) {
    const tm_plan_action *action = &l.program->actions[l.index];
    if (action->kind == TM_ACTION_LAUNCH) {
      status = launch_row(&l, action, action->value);
      tm_float_mode_restore(&frame.mode);
    } else {
      status = act(&l, action);
    }
    if (status != TM_OK) break;
  }
  tm_call_leave(&frame);
  end(&l, status, failure);
  return status;
}

/* ---- learning ---- */

static void learn(const loop *l, const tm_plan_action *action, uint64_t taken_ns) {
  const tm_graph_problem *problem = &l->program->problem;
  const uint64_t ns = taken_ns == 0 ? 1 : taken_ns;
  if (action->step != TM_PLAN_NONE) {
    l->program->steps[action->step].measured_ns = taken_ns;
    l->program->steps[action->step].measured_count++;
  }
  if (action->kind == TM_ACTION_LAUNCH || action->kind == TM_ACTION_ENQUEUE) {
    const tm_plan_step *step = &l->program->steps[action->step];
    tm_placement *placement = problem->placements[step->placement];
    tm_placement_learn(l->plan->runner.table, placement, &placement->candidates[step->candidate], ns, TM_PLAN_MEASURE_ONE_IN);
  } else if (action->kind == TM_ACTION_UPLOAD || action->kind == TM_ACTION_DOWNLOAD) {
    const uint32_t *links = action->kind == TM_ACTION_UPLOAD ? problem->links_in : problem->links_out;
    const uint64_t bytes = l->plan->graph->values[action->value].operand.byte_count;
    if (bytes == 0) return;
    tm_correction_learn_copy(l->plan->runner.table->market.correction, links[problem->places[action->place].memory], bytes, ns);
  }
}

static tm_status act_and_wait(loop *l, const tm_plan_action *action, const tm_call_frame *frame) {
  if (action->kind == TM_ACTION_LAUNCH) {
    const tm_status status = launch_row(l, action, 1);
    tm_float_mode_restore(&frame->mode);
    return status;
  }
  TM_TRY(act(l, action));
  const bool is_enqueued =
      action->kind == TM_ACTION_ENQUEUE || action->kind == TM_ACTION_UPLOAD || action->kind == TM_ACTION_DOWNLOAD;
  return is_enqueued ? wait(l, action->place, l->index + 1) : TM_OK;
}

static tm_status act_measured(loop *l, const tm_plan_action *action, const tm_call_frame *frame) {
  const tm_clock *clock = &l->plan->runner.table->market.inventory->clock;
  const bool is_launch = action->kind == TM_ACTION_LAUNCH || action->kind == TM_ACTION_ENQUEUE;
  tm_plan_check check = { .candidate = NULL };
  tm_status status = is_launch ? tm_plan_check_begin(&check, l->plan, action, l->error) : TM_OK;
  const uint64_t begin_ns = tm_clock_now(clock);
  if (status == TM_OK) status = act_and_wait(l, action, frame);
  const uint64_t taken_ns = tm_clock_since(clock, begin_ns);
  if (status == TM_OK) learn(l, action, taken_ns);
  if (status == TM_OK) status = tm_plan_check_end(&check, taken_ns, TM_PLAN_MEASURE_ONE_IN, l->error);
  tm_plan_check_drop(&check);
  return status;
}

tm_status tm_plan_loop_measured(tm_plan *plan, tm_plan_outcome *outcome, tm_loop_failure *failure) {
  begin_failure(failure);
  loop l = { .plan = plan, .program = &plan->program, .error = &failure->error, .outcome = outcome,
             .blamed = TM_PLAN_NONE };
  tm_call_frame frame;
  tm_status status = TM_OK;
  begin(&l);
  tm_call_enter(&frame, &failure->error);
  for (; l.index < l.program->action_count && status == TM_OK; l.index += status == TM_OK)
    status = act_measured(&l, &l.program->actions[l.index], &frame);
  tm_call_leave(&frame);
  end(&l, status, failure);
  return status;
}
