/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TM_OP_TRANSPOSE, TM_OP_COPY and TM_OP_GATHER into dense outputs.  A transposition is a copy from a view, so both are one:
 * axes that run on in both operands are merged; then either both have the same fastest axis and lines are copied, or the
 * plane of the two fastest axes goes through tiles that fit the cache.
 */
#include <string.h>

#include "cpu_simd.h"
#include "kernel_shape.h"

#define TILE 32u                /* elements a side: two tiles of 8-byte elements are 16 KiB */
#define PART_BYTES 65536u       /* at least so many for a thread */

/* ---- one plane, element sizes of 1, 2, 4 and 8 bytes ---- */

/* x[r][c] has its columns dense, y[c][r] its rows; strides in bytes are those of the other axis. */
typedef void (*plane_fn)(const unsigned char *x, int64_t x_stride, unsigned char *y, int64_t y_stride, uint64_t rows, uint64_t columns);

#define PLAIN_TRANSPOSE(bits)                                                                                               \
  static void plain_##bits(const unsigned char *x, int64_t x_stride, unsigned char *y, int64_t y_stride, uint64_t rows,     \
                           uint64_t columns) {                                                                              \
    for (uint64_t c = 0; c < columns; ++c) {                                                                                \
      for (uint64_t r = 0; r < rows; ++r) {                                                                                 \
        memcpy(y + (int64_t)c * y_stride + (int64_t)(r * (bits / 8)), x + (int64_t)r * x_stride + (int64_t)(c * (bits / 8)), \
               bits / 8);                                                                                                   \
      }                                                                                                                     \
    }                                                                                                                       \
  }
PLAIN_TRANSPOSE(8)
PLAIN_TRANSPOSE(16)
PLAIN_TRANSPOSE(32)
PLAIN_TRANSPOSE(64)

/* 8 by 8 elements of 4 bytes: neighbours, then pairs, then halves change places. */
CPU_INLINE void square_32(const unsigned char *x, int64_t x_stride, unsigned char *y, int64_t y_stride) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = cpu_load_ps(x + i * x_stride);
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = _mm256_unpacklo_ps(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = _mm256_unpackhi_ps(a[2 * i], a[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    a[4 * i] = _mm256_shuffle_ps(b[4 * i], b[4 * i + 2], 0x44);
    a[4 * i + 1] = _mm256_shuffle_ps(b[4 * i], b[4 * i + 2], 0xee);
    a[4 * i + 2] = _mm256_shuffle_ps(b[4 * i + 1], b[4 * i + 3], 0x44);
    a[4 * i + 3] = _mm256_shuffle_ps(b[4 * i + 1], b[4 * i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    cpu_store(y + i * y_stride, _mm256_castps_si256(_mm256_permute2f128_ps(a[i], a[i + 4], 0x20)));
    cpu_store(y + (i + 4) * y_stride, _mm256_castps_si256(_mm256_permute2f128_ps(a[i], a[i + 4], 0x31)));
  }
}

/* 8 by 8 elements of 2 bytes. */
CPU_INLINE void square_16(const unsigned char *x, int64_t x_stride, unsigned char *y, int64_t y_stride) {
  __m128i a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = cpu_load128(x + i * x_stride);
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = _mm_unpacklo_epi16(a[2 * i], a[2 * i + 1]);
    b[2 * i + 1] = _mm_unpackhi_epi16(a[2 * i], a[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    a[4 * i] = _mm_unpacklo_epi32(b[4 * i], b[4 * i + 2]);
    a[4 * i + 1] = _mm_unpackhi_epi32(b[4 * i], b[4 * i + 2]);
    a[4 * i + 2] = _mm_unpacklo_epi32(b[4 * i + 1], b[4 * i + 3]);
    a[4 * i + 3] = _mm_unpackhi_epi32(b[4 * i + 1], b[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    _mm_storeu_si128((__m128i_u *)(void *)(y + 2 * i * y_stride), _mm_unpacklo_epi64(a[i], a[i + 4]));
    _mm_storeu_si128((__m128i_u *)(void *)(y + (2 * i + 1) * y_stride), _mm_unpackhi_epi64(a[i], a[i + 4]));
  }
}

/* 4 by 4 elements of 8 bytes. */
CPU_INLINE void square_64(const unsigned char *x, int64_t x_stride, unsigned char *y, int64_t y_stride) {
  const __m256d a = cpu_load_pd(x), b = cpu_load_pd(x + x_stride), c = cpu_load_pd(x + 2 * x_stride), d = cpu_load_pd(x + 3 * x_stride);
  const __m256d ab = _mm256_unpacklo_pd(a, b), ba = _mm256_unpackhi_pd(a, b), cd = _mm256_unpacklo_pd(c, d), dc = _mm256_unpackhi_pd(c, d);
  cpu_store(y, _mm256_castpd_si256(_mm256_permute2f128_pd(ab, cd, 0x20)));
  cpu_store(y + y_stride, _mm256_castpd_si256(_mm256_permute2f128_pd(ba, dc, 0x20)));
  cpu_store(y + 2 * y_stride, _mm256_castpd_si256(_mm256_permute2f128_pd(ab, cd, 0x31)));
  cpu_store(y + 3 * y_stride, _mm256_castpd_si256(_mm256_permute2f128_pd(ba, dc, 0x31)));
}

/* Whole squares by vectors, the rims one by one. */
#define VECTOR_TRANSPOSE(bits, side)                                                                                         \
  static CPU_AVX2 void vector_##bits(const unsigned char *x, int64_t x_stride, unsigned char *y, int64_t y_stride,           \
                                     uint64_t rows, uint64_t columns) {                                                      \
    const uint64_t r_end = rows / side * side, c_end = columns / side * side;                                                \
    for (uint64_t r = 0; r < r_end; r += side) {                                                                             \
      for (uint64_t c = 0; c < c_end; c += side) {                                                                           \
        square_##bits(x + (int64_t)r * x_stride + (int64_t)(c * (bits / 8)), x_stride,                                       \
                      y + (int64_t)c * y_stride + (int64_t)(r * (bits / 8)), y_stride);                                      \
      }                                                                                                                      \
    }                                                                                                                        \
    plain_##bits(x + (int64_t)(c_end * (bits / 8)), x_stride, y + (int64_t)c_end * y_stride, y_stride, rows, columns - c_end); \
    plain_##bits(x + (int64_t)r_end * x_stride, x_stride, y + (int64_t)(r_end * (bits / 8)), y_stride, rows - r_end, c_end);  \
  }
VECTOR_TRANSPOSE(16, 8)
VECTOR_TRANSPOSE(32, 8)
VECTOR_TRANSPOSE(64, 4)

static plane_fn plane_function(uint64_t element_bytes) {
  return element_bytes == 1 ? plain_8 : element_bytes == 2 ? vector_16 : element_bytes == 4 ? vector_32 : vector_64;
}

/* ---- the copy as a list of merged axes ---- */

typedef struct copy_plan {
  kernel_axes axes;             /* in y's order */
  uint32_t    fastest_x;        /* the axis along which x is dense; y is dense along the last one */
  uint64_t    element_bytes;
} copy_plan;

/* 1 if this is a copy that the tiles or lines can do. */
static int make_plan(const tm_operation *operation, copy_plan *plan) {
  const tm_operand *x = &operation->operands[0], *y = &operation->operands[1];
  const tm_transpose_attributes *attributes = operation->attributes;
  *plan = (copy_plan){ .element_bytes = kernel_element_bytes(x->format), .fastest_x = TM_MAX_RANK };
  if (plan->element_bytes == 0 || x->element_count == 0) return 0;
  for (uint32_t i = 0; i < y->rank; ++i) {
    const uint32_t from = operation->op == TM_OP_TRANSPOSE ? attributes->permutation[i] : i;
    if (from >= x->rank) return 0;
    kernel_axes_append(&plan->axes, (kernel_axis){ y->dims[i], x->strides_bytes[from], y->strides_bytes[i] });
  }
  if (plan->axes.count == 0) {
    plan->axes.items[plan->axes.count++] = (kernel_axis){ 1, (int64_t)plan->element_bytes, (int64_t)plan->element_bytes };
  }
  for (uint32_t i = 0; i < plan->axes.count; ++i) {
    if (plan->axes.items[i].x_step_bytes == (int64_t)plan->element_bytes) plan->fastest_x = i;
  }
  return plan->fastest_x < TM_MAX_RANK && plan->axes.items[plan->axes.count - 1].y_step_bytes == (int64_t)plan->element_bytes;
}

typedef struct copy_job {
  copy_plan            plan;
  const unsigned char *x;
  unsigned char       *y;
  uint64_t             row_tiles;       /* of TILE rows of the plane, each a part for a thread */
} copy_job;

/* Addresses of item `index` over all axes but the skipped ones. */
static void locate(const copy_job *job, uint64_t index, uint32_t skip_a, uint32_t skip_b, const unsigned char **x, unsigned char **y) {
  for (uint32_t i = job->plan.axes.count; i-- > 0;) {
    const kernel_axis *axis = &job->plan.axes.items[i];
    if (i == skip_a || i == skip_b) continue;
    const int64_t at = (int64_t)(index % axis->extent);
    index /= axis->extent;
    *x += at * axis->x_step_bytes;
    *y += at * axis->y_step_bytes;
  }
}

static void line_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const copy_job *job = argument;
  const uint32_t last = job->plan.axes.count - 1;
  const uint64_t bytes = job->plan.axes.items[last].extent * job->plan.element_bytes;
  (void)lane;
  for (uint64_t i = begin; i < end; ++i) {
    const unsigned char *x = job->x;
    unsigned char *y = job->y;
    locate(job, i, last, last, &x, &y);
    memcpy(y, x, bytes);
  }
}

/* Items: strips of TILE rows of y's plane; y's rows are x's columns. */
static void tile_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const copy_job *job = argument;
  const copy_plan *plan = &job->plan;
  const kernel_axis *columns = &plan->axes.items[plan->fastest_x], *rows = &plan->axes.items[plan->axes.count - 1];
  const plane_fn transpose = plane_function(plan->element_bytes);
  (void)lane;
  for (uint64_t item = begin; item < end; ++item) {
    const uint64_t c = item % job->row_tiles * TILE, c_count = columns->extent - c < TILE ? columns->extent - c : TILE;
    const unsigned char *x = job->x + (int64_t)c * columns->x_step_bytes;
    unsigned char *y = job->y + (int64_t)c * columns->y_step_bytes;
    locate(job, item / job->row_tiles, plan->fastest_x, plan->axes.count - 1, &x, &y);
    for (uint64_t r = 0; r < rows->extent; r += TILE) {
      transpose(x + (int64_t)r * rows->x_step_bytes, rows->x_step_bytes, y + (int64_t)r * rows->y_step_bytes, columns->y_step_bytes,
                rows->extent - r < TILE ? rows->extent - r : TILE, c_count);
    }
  }
}

static void run_copy(const cpu_call *call) {
  copy_job job = { .x = call->pointers[0], .y = call->pointers[1] };
  make_plan(call->operation, &job.plan);
  const uint32_t last = job.plan.axes.count - 1;
  const uint64_t total = call->operation->operands[1].element_count, line = job.plan.axes.items[last].extent;
  if (job.plan.fastest_x == last) {
    const uint64_t grain = PART_BYTES / (line * job.plan.element_bytes) + 1;
    call->host->parallel_for(call->host->context, total / line, grain, line_range, &job);
  } else {
    const uint64_t columns = job.plan.axes.items[job.plan.fastest_x].extent;
    job.row_tiles = (columns + TILE - 1) / TILE;
    const uint64_t grain = PART_BYTES / (line * TILE * job.plan.element_bytes) + 1;
    call->host->parallel_for(call->host->context, total / line / columns * job.row_tiles, grain, tile_range, &job);
  }
}

static uint32_t refuses_copy(const tm_operation *operation, uint32_t *out_operand) {
  copy_plan plan;
  *out_operand = 1;
  if ((operation->operands[1].flags & TM_OPERAND_CONTIGUOUS) == 0) return TM_REASON_LAYOUT;
  *out_operand = 0;
  if (kernel_element_bytes(operation->operands[0].format) == 0) return TM_REASON_FORMAT;
  return make_plan(operation, &plan) ? 0 : TM_REASON_LAYOUT;
}

/* A copy of dense lines is worth nothing here: the reference is a memcpy then. */
static uint32_t refuses_view(const tm_operation *operation, uint32_t *out_operand) {
  copy_plan plan;
  const uint32_t reasons = refuses_copy(operation, out_operand);
  if (reasons != 0) return reasons;
  make_plan(operation, &plan);
  return plan.fastest_x == plan.axes.count - 1 ? TM_REASON_SHAPE : 0;
}

/* ---- gather ---- */

typedef struct gather_job {
  const unsigned char *x, *indices;
  unsigned char       *y;
  uint64_t             axis_extent, index_count, inner_bytes;
  int                  wide_indices;
} gather_job;

static int64_t index_at(const gather_job *job, uint64_t i) {
  int32_t narrow;
  int64_t wide;
  if (job->wide_indices) {
    memcpy(&wide, job->indices + i * sizeof wide, sizeof wide);
    return wide;
  }
  memcpy(&narrow, job->indices + i * sizeof narrow, sizeof narrow);
  return narrow;
}

static void gather_range(void *argument, uint64_t begin, uint64_t end, uint32_t lane) {
  const gather_job *job = argument;
  (void)lane;
  for (uint64_t item = begin; item < end; ++item) {
    const uint64_t outer = item / job->index_count;
    const int64_t index = index_at(job, item % job->index_count);
    unsigned char *y = job->y + item * job->inner_bytes;
    if (index >= 0 && (uint64_t)index < job->axis_extent) {
      memcpy(y, job->x + (outer * job->axis_extent + (uint64_t)index) * job->inner_bytes, job->inner_bytes);
    } else {
      memset(y, 0, job->inner_bytes);
    }
  }
}

static void run_gather(const cpu_call *call) {
  const tm_operand *x = &call->operation->operands[0], *indices = &call->operation->operands[1];
  const uint32_t axis = ((const tm_axis_attributes *)call->operation->attributes)->axis;
  gather_job job = {
    .x = call->pointers[0],
    .indices = call->pointers[1],
    .y = call->pointers[2],
    .axis_extent = x->dims[axis],
    .index_count = indices->element_count,
    .inner_bytes = (uint64_t)x->strides_bytes[axis],
    .wide_indices = indices->format == TM_FORMAT_I64,
  };
  uint64_t outer = 1;
  if (call->operation->operands[2].element_count == 0) return;  /* strides of what is empty say nothing */
  for (uint32_t i = 0; i < axis; ++i) outer *= x->dims[i];
  call->host->parallel_for(call->host->context, outer * job.index_count, PART_BYTES / (job.inner_bytes + 1) + 1, gather_range, &job);
}

/* ---- rows ---- */

static uint64_t copy_cost_ns(const tm_operation *operation, uint32_t lanes) {
  const tm_operand *y = &operation->operands[1];
  const uint32_t busy = y->byte_count <= PART_BYTES ? 1 : lanes;
  return 50 + cpu_cost_ns((double)y->element_count, 1300.0, kernel_operand_bytes(operation), busy);
}

static uint64_t gather_cost_ns(const tm_operation *operation, uint32_t lanes) {
  const tm_operand *y = &operation->operands[2];
  const double lines = (double)operation->operands[1].element_count;
  return 50 + cpu_cost_ns(lines, 300.0, 2 * (double)y->byte_count, y->byte_count <= PART_BYTES ? 1 : lanes);
}

#define MOVE_FLAGS .isa = CPU_ISA_AVX2, .level = TM_LEVEL_NATIVE, .numerics = TM_NUMERICS_N0,                    \
                   .numerics_flags = TM_NUMERICS_RUN_TO_RUN | TM_NUMERICS_KEEPS_NONFINITE

static const cpu_row rows[] = {
  { .op = TM_OP_TRANSPOSE, .attribute_bytes = sizeof(tm_transpose_attributes), MOVE_FLAGS, .name = "cpu_transpose__avx2",
    .refuses = refuses_copy, .cost_ns = copy_cost_ns, .run = run_copy },
  { .op = TM_OP_COPY, MOVE_FLAGS, .name = "cpu_copy__avx2", .refuses = refuses_view, .cost_ns = copy_cost_ns, .run = run_copy },
  { .op = TM_OP_GATHER, .formats = { TM_FORMAT_NONE, TM_FORMAT_I64 }, .attribute_bytes = sizeof(tm_axis_attributes), MOVE_FLAGS,
    .name = "cpu_gather_i64__avx2", .cost_ns = gather_cost_ns, .run = run_gather },
  { .op = TM_OP_GATHER, .formats = { TM_FORMAT_NONE, TM_FORMAT_I32 }, .attribute_bytes = sizeof(tm_axis_attributes), MOVE_FLAGS,
    .name = "cpu_gather_i32__avx2", .cost_ns = gather_cost_ns, .run = run_gather },
};

const kernel_row_table cpu_rows_move = { rows, sizeof rows / sizeof rows[0] };
