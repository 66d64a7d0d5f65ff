/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu_elementwise_span.h"

#include <string.h>

#include "cpu_memory_cost.h"
#include "cpu_vector_avx2.h"

#define OPERANDS (CPU_SPAN_INPUTS + 1)

/* What one thread takes at least, well above the price of waking it. */
#define GRAIN_PICOSECONDS 5000000u

#define ROW_NS 12.0

/* Rows shorter than this cost more to find than to compute; the reference is as good at that. */
#define LEAST_RUN 8u

typedef struct walk {
  const cpu_span     *span;
  const tm_operation *operation;
  void *const        *pointers;
  uint64_t            run;              /* elements of a row */
  uint32_t            outer_rank;       /* axes that are walked; 0 if all is one row */
  uint32_t            repeats;          /* bit i: input i has one element a row */
} walk;

/* Where the walk stands: an odometer over the outer axes and the byte offset of the current row in each operand. */
typedef struct row_position {
  uint64_t index[TM_MAX_RANK];
  int64_t  offset[OPERANDS];
} row_position;

/* Below, waking the others takes longer than they save. */
#define LEAST_GRAINS 3u

static uint64_t grain_of(const cpu_span *span) {
  return GRAIN_PICOSECONDS / span->picoseconds / CPU_SPAN_ELEMENTS * CPU_SPAN_ELEMENTS + CPU_SPAN_ELEMENTS;
}

static uint32_t operand_count(const tm_operation *operation) {
  return operation->input_count + operation->output_count;
}

static const tm_operand *output_of(const tm_operation *operation) {
  return &operation->operands[operation->input_count];
}

/* Are all operands one long row? */
static int is_dense(const tm_operation *operation) {
  for (uint32_t i = 0; i < operand_count(operation); i++) {
    const tm_operand *operand = &operation->operands[i];
    if ((operand->flags & TM_OPERAND_CONTIGUOUS) == 0) return 0;
    if (operand->element_count != output_of(operation)->element_count) return 0;
  }
  return 1;
}

static uint64_t row_length(const tm_operation *operation) {
  const tm_operand *output = output_of(operation);
  if (output->rank == 0 || is_dense(operation)) return output->element_count;
  return output->dims[output->rank - 1];
}

static int64_t last_stride(const tm_operand *operand) {
  return operand->rank == 0 ? 0 : operand->strides_bytes[operand->rank - 1];
}

uint32_t cpu_span_refuses(const cpu_span *span, const tm_operation *operation, uint32_t *out_operand) {
  const uint64_t run = row_length(operation), count = output_of(operation)->element_count;
  *out_operand = TM_NO_OPERAND;
  if (run < LEAST_RUN && run < count) return TM_REASON_SHAPE;
  for (uint32_t i = 0; i <= span->input_count && run > 1 && !is_dense(operation); i++) {
    const int64_t stride = last_stride(&operation->operands[i]);
    const int repeats = stride == 0 && i < span->input_count;
    if (stride == (int64_t)span->element_bytes[i] || repeats) continue;
    *out_operand = i;
    return TM_REASON_LAYOUT;
  }
  return 0;
}

/* The larger of computing and moving, plus the bookkeeping of rows. */
uint64_t cpu_span_cost_ns(const cpu_span *span, const tm_operation *operation, uint32_t lanes) {
  const uint64_t count = output_of(operation)->element_count;
  const uint64_t run = row_length(operation);
  uint64_t bytes = 0;
  for (uint32_t i = 0; i <= span->input_count; i++) bytes += operation->operands[i].byte_count;
  const int is_serial = lanes == 1 || count <= LEAST_GRAINS * grain_of(span);
  const double parts = is_serial ? 1.0 : (double)lanes;
  const double compute = (double)count * span->picoseconds * 1e-3 / parts;
  const double rows = run == 0 ? 0.0 : (double)(count / run) * ROW_NS / parts;
  const double move = cpu_move_ns((double)bytes, parts);
  return cpu_whole_ns(rows + (compute > move ? compute : move) + (is_serial ? 0 : CPU_WAKE_NS));
}

static void position_at(const walk *w, uint64_t row, row_position *position) {
  const tm_operation *operation = w->operation;
  const tm_operand *output = output_of(operation);
  memset(position, 0, sizeof(*position));
  for (uint32_t axis = w->outer_rank; axis-- > 0;) {
    const uint64_t index = row % output->dims[axis];
    row /= output->dims[axis];
    position->index[axis] = index;
    for (uint32_t i = 0; i < operand_count(operation); i++)
      position->offset[i] += (int64_t)index * operation->operands[i].strides_bytes[axis];
  }
}

static void next_row(const walk *w, row_position *position) {
  const tm_operation *operation = w->operation;
  const tm_operand *output = output_of(operation);
  for (uint32_t axis = w->outer_rank; axis-- > 0;) {
    const uint64_t extent = output->dims[axis];
    const int carries = ++position->index[axis] == extent;
    const int64_t steps = carries ? 1 - (int64_t)extent : 1;
    for (uint32_t i = 0; i < operand_count(operation); i++)
      position->offset[i] += steps * operation->operands[i].strides_bytes[axis];
    if (!carries) return;
    position->index[axis] = 0;
  }
}

/* Fills `count` elements with copies of the one at `value`, and the rest of the last 32 bytes. */
CPU_AVX2 static void expand(char *to, const char *value, uint32_t bytes, uint64_t count) {
  const __m128i element = load_part_bytes(value, bytes);
  const __m256i copies = bytes == 8   ? _mm256_broadcastq_epi64(element)
                         : bytes == 4 ? _mm256_broadcastd_epi32(element)
                         : bytes == 2 ? _mm256_broadcastw_epi16(element)
                                      : _mm256_broadcastb_epi8(element);
  for (uint64_t at = 0; at < count * bytes; at += 32) _mm256_store_si256((__m256i *)(void *)(to + at), copies);
}

/* Computes elements [begin, end) of the row at `position`. */
static void compute_row(const walk *w, const row_position *position, uint64_t begin, uint64_t end) {
  const cpu_span *span = w->span;
  _Alignas(32) char repeated[CPU_SPAN_INPUTS][CPU_SPAN_ELEMENTS * 8];
  const uint64_t longest = end - begin < CPU_SPAN_ELEMENTS ? end - begin : CPU_SPAN_ELEMENTS;
  const char *from[CPU_SPAN_INPUTS];
  uint64_t step[CPU_SPAN_INPUTS];
  for (uint32_t i = 0; i < span->input_count; i++) {
    const uint32_t bytes = span->element_bytes[i];
    const char *row = (const char *)w->pointers[i] + position->offset[i];
    const int repeats = (w->repeats >> i & 1) != 0;
    if (repeats) expand(repeated[i], row, bytes, longest);
    from[i] = repeats ? repeated[i] : row + begin * bytes;
    step[i] = repeats ? 0 : bytes;
  }
  const uint32_t out_bytes = span->element_bytes[span->input_count];
  char *to = (char *)w->pointers[span->input_count] + position->offset[span->input_count];
  for (uint64_t done = begin; done < end;) {
    const uint64_t count = end - done < CPU_SPAN_ELEMENTS ? end - done : CPU_SPAN_ELEMENTS;
    const void *inputs[CPU_SPAN_INPUTS] = { from[0], span->input_count > 1 ? from[1] : NULL,
                                            span->input_count > 2 ? from[2] : NULL };
    span->compute(w->operation->attributes, inputs, to + done * out_bytes, count);
    for (uint32_t i = 0; i < span->input_count; i++) from[i] += count * step[i];
    done += count;
  }
}

static void compute_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const walk *w = argument;
  (void)lane;
  row_position position;
  position_at(w, begin / w->run, &position);
  uint64_t column = begin % w->run;
  while (begin < end) {
    const uint64_t count = w->run - column < end - begin ? w->run - column : end - begin;
    compute_row(w, &position, column, column + count);
    begin += count;
    column = 0;
    if (begin < end) next_row(w, &position);
  }
}

static walk walk_of(const cpu_span *span, const cpu_call *call) {
  const tm_operation *operation = call->operation;
  walk w = { .span = span, .operation = operation, .pointers = call->pointers, .run = row_length(operation) };
  if (is_dense(operation) || output_of(operation)->rank == 0) return w;
  w.outer_rank = output_of(operation)->rank - 1;
  for (uint32_t i = 0; i < span->input_count && w.run > 1; i++)
    if (last_stride(&operation->operands[i]) == 0) w.repeats |= 1u << i;
  return w;
}

void cpu_span_run(const cpu_span *span, const cpu_call *call) {
  const uint64_t count = output_of(call->operation)->element_count;
  if (count == 0) return;
  walk w = walk_of(span, call);
  if (count <= LEAST_GRAINS * grain_of(span))
    compute_range(&w, 0, count, 0);
  else
    call->host->parallel_for(call->host->context, count, grain_of(span), compute_range, &w);
}
