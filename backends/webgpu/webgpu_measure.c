/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes, splits and costs: what predicates and formulas of all families share. */
#include "webgpu_kernel.h"

#define MEMORY_BYTES_PER_US 100000.0    /* 100 GB/s: an ordinary card; the host corrects what it measures */
#define PROCESSOR_SHARE 0.1             /* of all rates, on an adapter that runs on the host's cores */
#define LARGEST_STEP INT64_C(0x7fffffff)
#define SPLIT_GRANULE 256u              /* elements; keeps parts of every format on every alignment */

uint32_t webgpu_refuses_steps(const tm_operand *operand, int64_t granule) {
  for (uint32_t i = 0; i < operand->rank; ++i) {
    const int64_t stride = operand->strides_bytes[i];
    if (stride % granule != 0) return TM_REASON_LAYOUT;
    if (stride > LARGEST_STEP || stride < -LARGEST_STEP) return TM_REASON_SIZE;
  }
  return 0;
}

/* ---- splitting ---- */

typedef struct splitting {
  const tm_operation *operation;
  webgpu_axis_fn      axis_of;
} splitting;

/* Bytes that an operand spans when `axis` has at most `extent` elements, in doubles: a guess is enough to choose by. */
static double span_bytes(const tm_operand *operand, uint32_t axis, uint64_t extent) {
  double span = kernel_element_bytes(operand->format);
  for (uint32_t i = 0; i < operand->rank; ++i) {
    const uint64_t dim = i == axis && operand->dims[i] > extent ? extent : operand->dims[i];
    const double stride = (double)operand->strides_bytes[i];
    if (dim > 1) span += (double)(dim - 1) * (stride < 0 ? -stride : stride);
  }
  return span;
}

static double largest_span(const splitting *s, uint32_t axis, uint64_t extent) {
  const tm_operation *operation = s->operation;
  double largest = 0;
  for (uint32_t i = 0; i < operation->input_count + operation->output_count; ++i) {
    const double span = span_bytes(&operation->operands[i], s->axis_of(operation, i, axis), extent);
    if (span > largest) largest = span;
  }
  return largest;
}

static int is_shared(const splitting *s, uint32_t operand, uint32_t axis) {
  const uint32_t rank = s->operation->operands[s->operation->input_count].rank;
  for (uint32_t i = 0; i < rank; ++i)
    if (s->axis_of(s->operation, operand, i) == axis) return 1;
  return 0;
}

/* Whether parts of one element of the output have room: what an operand does not share with it is in every part. */
static int can_fit(const splitting *s, double room) {
  for (uint32_t index = 0; index < s->operation->input_count; ++index) {
    tm_operand alone = s->operation->operands[index];
    for (uint32_t i = 0; i < alone.rank; ++i)
      if (is_shared(s, index, i)) alone.dims[i] = 1;
    if (span_bytes(&alone, TM_MAX_RANK, 1) > room) return 0;
  }
  return 1;
}

/* The largest extent that keeps all spans below the room, by bisection; 0 if not even 1 does. */
static uint64_t fitting_extent(const splitting *s, uint32_t axis, double room) {
  uint64_t low = 0, high = s->operation->operands[s->operation->input_count].dims[axis];
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (largest_span(s, axis, middle) <= room) low = middle;
    else high = middle - 1;
  }
  return low;
}

int webgpu_split_by(const webgpu_limits *limits, const tm_operation *operation, webgpu_axis_fn axis_of, tm_change *out_change) {
  const splitting s = { operation, axis_of };
  const tm_operand *y = &operation->operands[operation->input_count];
  const double room = (double)limits->binding_bytes - 2.0 * limits->offset_alignment;
  uint32_t best_axis = TM_MAX_RANK;
  uint64_t best_extent = 0;
  double best = 0;
  if (!can_fit(&s, room)) return 0;
  for (uint32_t axis = 0; axis < y->rank && best_extent == 0; ++axis) {
    const double alone = largest_span(&s, axis, 1);
    const int is_best = best_axis == TM_MAX_RANK || alone < best;
    if (y->dims[axis] < 2 || alone >= largest_span(&s, axis, y->dims[axis]) || !is_best) continue;
    best = alone;
    best_axis = axis;
    best_extent = fitting_extent(&s, axis, room);
  }
  if (best_axis == TM_MAX_RANK) return 0;
  if (best_extent == 0) best_extent = 1;        /* the parts are asked about anew, and split further */
  if (best_extent > SPLIT_GRANULE) best_extent -= best_extent % SPLIT_GRANULE;
  *out_change = (tm_change){
    .kind = TM_CHANGE_SPLIT_ABOVE, .operand = operation->input_count, .axis = best_axis, .value = best_extent,
  };
  return 1;
}

/* Operands of the output's rank share its axes; one of another rank is a scalar. */
static uint32_t same_axis(const tm_operation *operation, uint32_t operand, uint32_t axis) {
  return operation->operands[operand].rank == operation->operands[operation->input_count].rank ? axis : TM_MAX_RANK;
}

int webgpu_split_output(const webgpu_limits *limits, const tm_operation *operation, tm_change *out_change) {
  return webgpu_split_by(limits, operation, same_axis, out_change);
}

/* ---- costs ---- */

uint64_t webgpu_cost_ns(const webgpu_limits *limits, double units, double units_per_us, double bytes) {
  const double share = limits->is_processor ? PROCESSOR_SHARE : 1.0;
  const double compute = units * 1000.0 / (units_per_us * share), memory = bytes * 1000.0 / (MEMORY_BYTES_PER_US * share);
  const double ns = compute > memory ? compute : memory;
  return ns < 1e15 ? (uint64_t)ns : UINT64_C(1000000000000000);
}
