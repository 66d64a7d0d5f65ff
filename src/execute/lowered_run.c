/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/lowered_run.h"

#include <string.h>

#include "base/error.h"
#include "tensor/codec.h"

tm_status tm_lowered_run_step(const tm_lowered_run *run, const tm_request *request, void *const *pointers,
                              const uint64_t *origins) {
  tm_run_outcome step;
  tm_runner runner = *run->runner;
  runner.is_strict = false;             /* that is about the device that was chosen, and there is no other for what is inside */
  const tm_status status = tm_runner_run_from(&runner, request, pointers, origins, run->outcome == NULL ? NULL : &step, run->error);
  /* A step that hangs may use what it was given for ever, and that is ours and the caller's. */
  if (status == TM_ERROR_INTERNAL) atomic_store(&run->candidate->holds_operands, true);
  if (status != TM_OK) return status == TM_ERROR_NO_MEMORY || status == TM_ERROR_CANCELLED ? status : TM_ERROR_PREDECESSOR;
  if (run->outcome == NULL || step.retries == 0) return TM_OK;
  run->outcome->retries += step.retries;
  run->outcome->fell_back |= step.fell_back;
  memcpy(run->outcome->note, step.note, sizeof run->outcome->note);
  return TM_OK;
}

/* ---- one operand ---- */

static tm_status fill(const tm_lowered_run *run, const tm_operand_way *way, void *dense) {
  tm_request request;
  uint64_t element[2] = { 0, 0 };
  if (way->pad_value != 0) tm_codec_find(way->dense.format)->encode(&way->pad_value, 1, element);
  tm_lowering_fill_request(way, &request);
  void *const pair[2] = { element, dense };
  return tm_lowered_run_step(run, &request, pair, NULL);
}

tm_status tm_lowered_run_move_in(const tm_lowered_run *run, const tm_operand_way *way, void *from, void *dense) {
  tm_request request;
  if (way->is_padded) TM_TRY(fill(run, way, dense));
  tm_lowering_move_request(way, false, &request);
  void *const pair[2] = { from, dense };
  return tm_lowered_run_step(run, &request, pair, NULL);
}

static tm_status move_out(const tm_lowered_run *run, const tm_operand_way *way, void *dense, void *to) {
  tm_request request;
  tm_lowering_move_request(way, true, &request);
  void *const pair[2] = { dense, to };
  return tm_lowered_run_step(run, &request, pair, NULL);
}

/* ---- all of them ---- */

/* What operands are on their ways. */
typedef struct passage {
  void            *pointers[TM_MAX_OPERANDS];
  uint64_t         origins[TM_MAX_OPERANDS];
  tm_resident      residents[TM_MAX_OPERANDS];
  tm_scratch_block blocks[TM_MAX_CHANGES];
  tm_kept         *kept[TM_MAX_CHANGES];
} passage;

static tm_status take_kept(const tm_lowered_run *run, passage *p, uint32_t index) {
  const tm_operand_way *way = &run->candidate->lowering->ways[index];
  TM_TRY(tm_lowered_run_keep(run, way, &p->kept[index]));
  const tm_kept *kept = p->kept[index];
  p->origins[way->operand] = kept->origin;
  if (kept->device != NULL) p->residents[way->operand] = (tm_resident){ kept->buffer, kept->bytes };
  else p->pointers[way->operand] = kept->buffer;
  return TM_OK;
}

static tm_status take_scratch(const tm_lowered_run *run, passage *p, uint32_t index) {
  const tm_operand_way *way = &run->candidate->lowering->ways[index];
  p->blocks[index] = tm_scratch_take_aligned(run->runner->scratch, way->dense.byte_count, way->dense.alignment);
  if (p->blocks[index].memory == NULL) return tm_fail(run->error, TM_ERROR_NO_MEMORY, "no memory for an intermediate tensor");
  void *dense = tm_scratch_start(&p->blocks[index], way->dense.alignment);
  p->pointers[way->operand] = dense;
  p->origins[way->operand] = 0;
  return way->operand >= run->whole->input_count ? TM_OK : tm_lowered_run_move_in(run, way, run->pointers[way->operand], dense);
}

static tm_status go_in(const tm_lowered_run *run, passage *p) {
  const tm_lowering *lowering = run->candidate->lowering;
  for (uint32_t i = 0; i < lowering->way_count; i++)
    TM_TRY(lowering->ways[i].is_kept ? take_kept(run, p, i) : take_scratch(run, p, i));
  return TM_OK;
}

static tm_status go_out(const tm_lowered_run *run, const passage *p) {
  const tm_lowering *lowering = run->candidate->lowering;
  for (uint32_t i = 0; i < lowering->way_count; i++) {
    const tm_operand_way *way = &lowering->ways[i];
    if (way->operand >= run->whole->input_count) TM_TRY(move_out(run, way, p->pointers[way->operand], run->pointers[way->operand]));
  }
  return TM_OK;
}

static tm_status compute(const tm_lowered_run *run, const passage *p) {
  const tm_lowering *lowering = run->candidate->lowering;
  if (lowering->has_inner) return tm_lowered_run_step(run, &lowering->inner, p->pointers, p->origins);
  return tm_kernel_run_once(run->runner, run->candidate, run->kernel, p->pointers, p->residents, false, run->measured, run->error);
}

tm_status tm_lowered_run_changed(const tm_lowered_run *run) {
  const uint32_t count = run->whole->input_count + run->whole->output_count;
  passage p;
  memset(&p, 0, sizeof p);
  memcpy(p.pointers, run->pointers, count * sizeof p.pointers[0]);
  memcpy(p.origins, run->origins, count * sizeof p.origins[0]);
  tm_status status = go_in(run, &p);
  if (status == TM_OK) status = compute(run, &p);
  if (status == TM_OK) status = go_out(run, &p);
  for (uint32_t i = 0; i < run->candidate->lowering->way_count && !tm_lowered_run_is_held(run); i++) {
    tm_scratch_give(run->runner->scratch, p.blocks[i]);
    tm_kept_release(run->runner->kept, p.kept[i]);
  }
  return status;
}
