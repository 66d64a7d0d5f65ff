/* SPDX-License-Identifier: Apache-2.0 */
/* Part after part, on the device that asked for parts. */
#include <string.h>

#include "base/error.h"
#include "execute/lowered_run.h"

/* Where the operands of part `index` lie. */
static void locate(const tm_lowered_run *run, uint64_t index, void **out_pointers) {
  const tm_split *split = &run->candidate->lowering->split;
  for (uint32_t i = 0; i < run->whole->input_count + run->whole->output_count; i++)
    out_pointers[i] = (char *)run->pointers[i] + (int64_t)index * split->steps_bytes[i];
}

static tm_status run_part(const tm_lowered_run *run, uint64_t index, void *result) {
  const tm_lowering *lowering = run->candidate->lowering;
  const bool is_tail = lowering->tail.input_count != 0 && index + 1 == lowering->split.count;
  void *pointers[TM_MAX_OPERANDS];
  locate(run, index, pointers);
  if (result != NULL) pointers[run->whole->input_count] = result;
  return tm_lowered_run_step(run, is_tail ? &lowering->tail : &lowering->inner, pointers, run->origins);
}

static tm_status run_side_by_side(const tm_lowered_run *run) {
  for (uint64_t i = 0; i < run->candidate->lowering->split.count; i++) TM_TRY(run_part(run, i, NULL));
  return TM_OK;
}

static tm_status finish(const tm_lowered_run *run, void *result) {
  const uint32_t y = run->whole->input_count;
  tm_request request;
  tm_lowering_finish_request(&run->candidate->lowering->split, &run->whole->operands[y], &request);
  void *const pair[2] = { result, run->pointers[y] };
  return tm_lowered_run_step(run, &request, pair, NULL);
}

static tm_status run_words(const tm_lowered_run *run, void *const *results) {
  const tm_op_row *row = tm_op_find(run->whole->op);
  TM_TRY(run_part(run, 0, results[0]));
  for (uint64_t i = 1; i < run->candidate->lowering->split.count; i++) {
    TM_TRY(run_part(run, i, results[1]));
    row->combine_words(results[0], results[1]);
  }
  return finish(run, results[0]);
}

/* The sum so far and the next part become the other sum: outputs lie apart from inputs. */
static tm_status run_sums(const tm_lowered_run *run, void *const *results) {
  const tm_split *split = &run->candidate->lowering->split;
  tm_request add;
  tm_operand to = split->sum;
  to.alignment = 64;
  tm_lowering_add_request(split, &to, &add);
  TM_TRY(run_part(run, 0, results[0]));
  for (uint64_t i = 1; i < split->count; i++) {
    TM_TRY(run_part(run, i, results[2]));
    void *const triple[3] = { results[(i + 1) % 2], results[2], results[i % 2] };
    TM_TRY(tm_lowered_run_step(run, &add, triple, NULL));
  }
  return finish(run, results[(split->count - 1) % 2]);
}

tm_status tm_lowered_run_split(const tm_lowered_run *run) {
  const tm_split *split = &run->candidate->lowering->split;
  if (split->join == TM_JOIN_SIDE_BY_SIDE) return run_side_by_side(run);
  tm_scratch_block blocks[3];
  void *results[3];
  bool has_all = true;
  for (uint32_t i = 0; i < 3; i++) {
    blocks[i] = tm_scratch_take(run->runner->scratch, split->sum.byte_count);
    results[i] = blocks[i].memory;
    has_all &= results[i] != NULL;
  }
  tm_status status = TM_ERROR_NO_MEMORY;
  if (!has_all) (void)tm_fail(run->error, status, "no memory for partial results");
  else status = split->join == TM_JOIN_WORDS ? run_words(run, results) : run_sums(run, results);
  for (uint32_t i = 0; i < 3 && !tm_lowered_run_is_held(run); i++) tm_scratch_give(run->runner->scratch, blocks[i]);
  return status;
}
