/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/sampled_check.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "ops/result_closeness.h"
#include "ops/output_parts.h"
#include "ops/output_terms.h"
#include "ops/walk.h"
#include "plugin/answer.h"
#include "plugin/device.h"
#include "plugin/reference.h"
#include "tensor/format.h"
#include "tensor/shape.h"

/* Each of the first runs gets its share, so that the first look does not leave nothing for the second. */
#define SHARE_NS (TM_CHECK_GRANT_NS / TM_TRIAL_RUNS)
/* What one part costs beside what is computed. */
#define EACH_NS 300u
/* And what it costs to see whether an element is subnormal. */
#define EACH_SUBNORMAL_NS 4u
/* Later on it is worth the trouble from so many parts on. */
#define LEAST_PARTS 8u
#define SMALL_PART_BYTES 1024u

/* ---- what can be afforded ---- */

/* One that is not bit-equal is judged by its terms. */
static uint64_t price_each_ns(const tm_output_parts *parts, const tm_answer *answer) {
  const uint64_t units = tm_max_u64(1, parts->count / parts->columns);
  const uint64_t each_ns = tm_min_u64(tm_reference_price_ns(&parts->operation) / units, TM_LARGEST_COST_NS);
  const bool reads_twice = tm_closeness_needs_terms(answer) && tm_output_terms_take_a_pass(parts->operation.op);
  return EACH_NS + each_ns * (reads_twice ? 2 : 1);
}

static uint64_t left_ns(const tm_trial *trial, uint64_t spent_ns) {
  const uint64_t earned_ns = atomic_load_explicit(&trial->worked_ns, memory_order_relaxed) / TM_CHECK_ONE_IN;
  const uint64_t most_ns = earned_ns > UINT64_MAX - TM_CHECK_GRANT_NS ? UINT64_MAX : earned_ns + TM_CHECK_GRANT_NS;
  return most_ns > spent_ns ? most_ns - spent_ns : 0;
}

static bool is_first_look(const tm_trial *trial) {
  return atomic_load_explicit(&trial->check_count, memory_order_relaxed) <= TM_TRIAL_RUNS;
}

/* A power of two, so that it is mostly the same number, and parts take turns; or all that there are. */
static uint64_t part_count(const tm_trial *trial, uint64_t left, uint64_t each_ns, uint64_t all) {
  const bool is_first = is_first_look(trial);
  const uint64_t most = tm_min_u64(all, TM_CHECK_MOST_PARTS), least = is_first ? 1 : tm_min_u64(most, LEAST_PARTS);
  const uint64_t share = is_first ? tm_min_u64(left, tm_max_u64(SHARE_NS, each_ns)) : left;
  uint64_t count = share / each_ns >= most ? most : TM_CHECK_MOST_PARTS;
  while (count > share / each_ns || count > most) count /= 2;
  return count < least ? 0 : count;
}

/* Sets the price of as many parts aside as can be afforded. */
static uint64_t reserve(tm_trial *trial, uint64_t each_ns, uint64_t all) {
  uint64_t spent = atomic_load(&trial->checked_ns), count;
  do count = part_count(trial, left_ns(trial, spent), each_ns, all);
  while (count != 0 && !atomic_compare_exchange_weak(&trial->checked_ns, &spent, spent + count * each_ns));
  return count;
}

static uint64_t times(uint64_t a, uint64_t b) {
  uint64_t product;
  return tm_checked_mul(a, b, &product) ? product : UINT64_MAX;
}

void tm_sampled_check_account(const tm_checked_run *run) {
  tm_trial *trial = run->candidate->trial;
  atomic_fetch_add_explicit(&trial->worked_ns, times(run->taken_ns, run->run_count), memory_order_relaxed);
  atomic_fetch_add(&trial->run_count, run->run_count);
}

bool tm_sampled_check_can_afford(const tm_checked_run *run, uint64_t fetch_ns) {
  tm_output_parts parts;
  tm_trial *trial = run->candidate->trial;
  uint64_t spent = atomic_load(&trial->checked_ns);
  const uint64_t left = left_ns(trial, spent);
  if (left <= fetch_ns || run->candidate->answer.numerics == TM_NUMERICS_N4 || !tm_output_parts_init(&parts, run->operation)) return false;
  if (part_count(trial, left - fetch_ns, price_each_ns(&parts, &run->candidate->answer), parts.count) == 0) return false;
  return atomic_compare_exchange_strong(&trial->checked_ns, &spent, spent + fetch_ns);
}

/* ---- which parts ---- */

static uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

/* Of `size` things the one whose turn it is: each has it once in `size` times, neighbours far apart. */
static uint64_t whose_turn(uint64_t size, uint64_t stretch, uint64_t turn) {
  uint64_t step = size / 8 * 5 | 1;
  while (tm_common_divisor(step, size) != 1) step += 2;
  return (mixed(stretch + 1) % size + turn % size * (step % size)) % size;
}

static uint64_t begin_of(uint64_t all, uint64_t stretches, uint64_t stretch) {
  return all / stretches * stretch + tm_min_u64(stretch, all % stretches);
}

static uint64_t part_at(uint64_t all, uint64_t count, uint64_t i, uint64_t turn) {
  if (count == all) return i;
  const uint64_t ends = count > 2 ? 2 : 0;
  if (i < ends) return i == 0 ? 0 : all - 1;
  const uint64_t begin = begin_of(all, count - ends, i - ends), end = begin_of(all, count - ends, i - ends + 1);
  return begin + whose_turn(end - begin, i, turn);
}

/* ---- looking ---- */

/* In a block whose scale is subnormal nothing is as large as this: 127 times the smallest normal number of f16. */
#define SMALL_BLOCK 0x1p-7

static bool any_subnormal(const tm_format_info *info, const double *values, uint64_t count) {
  const bool is_block = info->kind == TM_KIND_BLOCK;
  const double smallest = is_block ? SMALL_BLOCK : tm_closeness_smallest_normal(info->format);
  for (uint64_t i = 0; i < count; i += info->block_elements) {
    double largest = 0;
    for (uint64_t k = i; k < i + info->block_elements; k++) largest = fmax(largest, fabs(values[k]));
    if (largest != 0 && largest < smallest) return true;
  }
  return false;
}

static bool is_subnormal_in(const tm_operand *operand, const void *first, uint64_t begin, uint64_t count) {
  const tm_format_info *info = tm_format_find(operand->format);
  if (info->kind != TM_KIND_FLOAT && info->kind != TM_KIND_BLOCK) return false;
  void *const pointer[1] = { (void *)(uintptr_t)first };
  double values[TM_RUN];
  tm_walk walk = tm_walk_begin(operand, operand, pointer, 1, begin);
  for (uint64_t left = count, n; left > 0; left -= n) {
    n = tm_walk_line(&walk, tm_min_u64(left, TM_RUN));
    tm_stream_load(&walk.streams[0], walk.addresses[0], n, values);
    if (any_subnormal(info, values, n)) return true;
    tm_walk_advance(&walk, n);
  }
  return false;
}

/* What a device makes of subnormal operands that it may take as zero cannot be judged.  Where all of an operand has to be looked at for
   that, this is paid for afterwards: the next check waits until it was earned. */
static bool may_have_flushed(const tm_checked_run *run, const tm_output_parts *parts, uint64_t part) {
  uint64_t cost_ns = 0;
  bool found = false;
  if ((run->candidate->answer.numerics_flags & TM_NUMERICS_FLUSHES) == 0) return false;
  for (uint32_t i = 0; i < run->operation->input_count && !found; i++) {
    uint64_t begin, count;
    tm_output_parts_reads(parts, part, i, &begin, &count);
    found = is_subnormal_in(&run->operation->operands[i], run->pointers[i], begin, count);
    cost_ns += count * EACH_SUBNORMAL_NS;
  }
  atomic_fetch_add(&run->candidate->trial->checked_ns, cost_ns);
  atomic_fetch_add(&run->candidate->device->checked_ns, cost_ns);
  return found;
}

static tm_status say(const tm_checked_run *run, const char *fault, tm_error *error) {
  atomic_fetch_add(&run->candidate->device->wrong_count, 1);
  const uint64_t runs = atomic_load(&run->candidate->trial->run_count);
  if (runs <= 1) return tm_fail(error, TM_ERROR_INTERNAL, "%s", fault);
  return tm_fail(error, TM_ERROR_INTERNAL, "%s; earlier runs of this kind, which may be wrong too: %llu", fault, (unsigned long long)(runs - 1));
}

static tm_status look(const tm_checked_run *run, const tm_output_parts *parts, uint64_t count, void *room, tm_error *error) {
  tm_plan_candidate *candidate = run->candidate;
  const uint64_t turn = atomic_fetch_add(&candidate->check_count, 1);
  char fault[TM_OUTPUT_FAULT_BYTES];
  atomic_fetch_add(&candidate->trial->check_count, 1);
  atomic_fetch_add(&candidate->device->checked_count, count);
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t part = part_at(parts->count, count, i, turn);
    if (tm_output_parts_check(parts, &candidate->answer, run->pointers, part, room, fault)) continue;
    return may_have_flushed(run, parts, part) ? TM_OK : say(run, fault, error);
  }
  return TM_OK;
}

static tm_status look_in_room(const tm_runner *runner, const tm_checked_run *run, const tm_output_parts *parts, uint64_t count,
                              tm_error *error) {
  _Alignas(16) char small[SMALL_PART_BYTES];
  if (parts->part_bytes <= sizeof small) return look(run, parts, count, small, error);
  const tm_scratch_block block = tm_scratch_take(runner->scratch, parts->part_bytes);
  if (block.memory == NULL) return TM_OK;
  const tm_status status = look(run, parts, count, block.memory, error);
  tm_scratch_give(runner->scratch, block);
  return status;
}

tm_status tm_sampled_check_look(const tm_runner *runner, const tm_checked_run *run, tm_error *error) {
  tm_output_parts parts;
  tm_plan_candidate *candidate = run->candidate;
  tm_trial *trial = candidate->trial;
  const uint64_t least_ns = atomic_load_explicit(&candidate->check_least_ns, memory_order_relaxed);
  const bool is_worth = left_ns(trial, atomic_load_explicit(&trial->checked_ns, memory_order_relaxed)) > tm_max_u64(least_ns, EACH_NS);
  if (!is_worth || candidate->answer.numerics == TM_NUMERICS_N4 || !tm_float_mode_is_usual()) return TM_OK;
  if (!tm_output_parts_init(&parts, run->operation)) return TM_OK;
  const uint64_t each_ns = price_each_ns(&parts, &candidate->answer), count = reserve(trial, each_ns, parts.count);
  if (count == 0) {
    atomic_store(&candidate->check_least_ns, each_ns * (is_first_look(trial) ? 1 : tm_min_u64(parts.count, LEAST_PARTS)));
    return TM_OK;
  }
  atomic_fetch_add(&candidate->device->checked_ns, count * each_ns);
  return look_in_room(runner, run, &parts, count, error);
}

tm_status tm_sampled_check(const tm_runner *runner, const tm_checked_run *run, tm_error *error) {
  if (!tm_sampled_check_is_for(run->candidate)) return TM_OK;
  tm_sampled_check_account(run);
  return tm_sampled_check_look(runner, run, error);
}

/* ---- the first look ---- */

/* The longest axis of input 0 that leaves the result's shape alone; TM_MAX_RANK: none. */
static uint32_t axis_to_cut(const tm_operation *operation) {
  const tm_op_row *row = tm_op_find(operation->op);
  const tm_operand *x = &operation->operands[0];
  uint32_t best = TM_MAX_RANK, axes = 0;
  if (row->combine == TM_COMBINE_WORDS) axes = row->splittable(operation);
  else if (row->op_class == TM_CLASS_REDUCE) axes = ((const tm_reduce_attributes *)operation->attributes)->axes;
  for (uint32_t axis = 0; axis < x->rank; axis++)
    if ((axes >> axis & 1u) != 0 && (best == TM_MAX_RANK || x->dims[axis] > x->dims[best])) best = axis;
  return best;
}

/* In whole blocks. */
static uint64_t shortened(const tm_operation *operation, uint32_t axis, uint64_t price_ns) {
  const uint64_t extent = operation->operands[0].dims[axis], parts = tm_max_u64(1, price_ns / (SHARE_NS / 2) + 1);
  uint64_t block = 1;
  for (uint32_t i = 0; i < operation->input_count; i++) {
    const tm_operand *x = &operation->operands[i];
    const tm_format_info *info = tm_format_find(x->format);
    if (axis + 1 == x->rank && info != NULL) block = tm_max_u64(block, info->block_elements);
  }
  return tm_max_u64(block, extent / parts / block * block);
}

bool tm_sampled_check_cut(const tm_plan_candidate *candidate, const tm_request *request, tm_request *out_tile) {
  tm_output_parts parts;
  const tm_operation *own = &candidate->operation;
  if (!tm_sampled_check_is_for(candidate) || candidate->lowering != NULL || !tm_trial_is_watched(candidate->trial)) return false;
  if (atomic_load(&candidate->trial->check_count) != 0 || candidate->answer.numerics == TM_NUMERICS_N4) return false;
  if (!tm_output_parts_init(&parts, own) || price_each_ns(&parts, &candidate->answer) <= TM_CHECK_GRANT_NS) return false;
  const tm_operation whole = tm_request_operation(request);
  const uint32_t axis = axis_to_cut(&whole);
  if (axis == TM_MAX_RANK || whole.operands[0].dims[axis] < 2) return false;
  *out_tile = *request;
  out_tile->only_device = candidate->device->index;
  out_tile->flags |= TM_REQUEST_AS_IS | TM_REQUEST_UNMEASURED;
  const uint64_t extent = shortened(&whole, axis, price_each_ns(&parts, &candidate->answer));
  for (uint32_t i = 0; i < request->input_count; i++) {
    out_tile->operands[i].dims[axis] = extent;
    out_tile->operands[i].flags &= ~TM_OPERAND_CONSTANT;
    if (tm_operand_derive(&out_tile->operands[i], NULL) != TM_OK) return false;
  }
  return true;
}
