/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/image.h"

#include <sys/mman.h>
#include <unistd.h>

/* Whole pages of any size; who goes astray goes far. */
#define FENCE_BYTES ((uint64_t)1 << 20)
#define PERIOD 4099u                    /* elements; a prime */

/* ---- room ---- */

static uint64_t common_multiple(uint64_t a, uint64_t b) {
  uint64_t x = a, y = b;
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return a / x * b;
}

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/* An odd multiple of a unit: aligned as declared, and no better where the granules allow it. */
static uint64_t odd_multiple(uint64_t least, uint64_t unit) {
  const uint64_t count = (least + unit - 1) / unit;
  return (count | 1) * unit;
}

static uint64_t page_bytes(void) { return (uint64_t)sysconf(_SC_PAGESIZE); }

static bool map(image *one) {
  const size_t bytes = (size_t)(one->size + 2 * FENCE_BYTES);
  one->mapping = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (one->mapping == MAP_FAILED) one->mapping = NULL;
  one->bytes = one->mapping == NULL ? NULL : (unsigned char *)one->mapping + FENCE_BYTES;
  if (one->bytes != NULL && mprotect(one->bytes, (size_t)one->size, PROT_READ | PROT_WRITE) != 0) image_drop(one);
  return one->bytes != NULL;
}

/* Whoever reads an input in the host's memory finds nothing behind it; a result has guard bytes, and what may lie in its place has
   whole stores. */
static uint64_t bytes_behind(const subject *s, uint64_t bytes, bool is_written) {
  if (is_written || !s->host_makes_buffers) return IMAGE_GUARD_BYTES;
  return round_up(bytes, s->space.store_granule) - bytes;
}

/* As far to the end of the last page as the alignment lets it. */
static void move_to_end(image *one, uint64_t unit) {
  const uint64_t end = one->lowest + one->touched + one->behind, step = 2 * unit;
  const uint64_t way = (one->size - end) / step * step;
  one->lowest += way;
  one->first += way;
}

bool image_make(image *one, const subject *s, uint64_t below, uint64_t bytes, uint64_t alignment, bool is_written) {
  const uint64_t stores = is_written ? s->space.store_granule : 1;
  const uint64_t unit = common_multiple(common_multiple(s->space.offset_granule, stores), alignment);
  memset(one, 0, sizeof *one);
  one->first = odd_multiple(IMAGE_GUARD_BYTES + s->far_bytes + below, unit);
  one->lowest = one->first - below;
  one->touched = round_up(bytes, stores);
  one->behind = bytes_behind(s, bytes, is_written);
  one->size = round_up(one->lowest + one->touched + one->behind, page_bytes());
  if (s->host_makes_buffers) move_to_end(one, unit);
  if (!map(one)) return false;
  memset(one->bytes, CASE_GUARD, one->size);
  return true;
}

void image_drop(image *one) {
  if (one->mapping != NULL) munmap(one->mapping, (size_t)(one->size + 2 * FENCE_BYTES));
  *one = (image){ .bytes = NULL };
}

void image_protect(const image *one) { (void)mprotect(one->bytes, (size_t)one->size, PROT_READ); }

tm_binding image_binding(const image *one) {
  return (tm_binding){ one->buffer, one->first, one->size - one->first - one->behind };
}

bool image_for(image *one, const subject *s, const tm_operand *operand, bool is_written) {
  return image_make(one, s, tm_operand_bytes_below(operand), operand->byte_count, operand->alignment, is_written);
}

bool image_copy(image *to, const image *from) {
  *to = *from;
  to->buffer = NULL;
  if (!map(to)) return false;
  memcpy(to->bytes, from->bytes, from->size);
  return true;
}

/* ---- data ---- */

static void fill_in_order(const case_buffer *view, const tm_operand *operand) {
  const uint64_t step = operand->byte_count / operand->element_count;
  for (uint64_t i = 0; i < operand->element_count; i++) memcpy(view->first + i * step, &i, step);
}

/* Many elements at random take long: what is large is the same ones again and again, in periods that no machine has. */
static void fill_often(const case_buffer *view, const tm_operand *operand, temper t, uint64_t *state) {
  const uint64_t period = (uint64_t)PERIOD * tm_format_find(operand->format)->block_bytes;
  tm_operand part = *operand;
  if (part.byte_count > period) part.byte_count = period;
  buffer_fill(view, &part, t, state);
  for (uint64_t done = part.byte_count, bytes; done < operand->byte_count; done += bytes) {
    bytes = operand->byte_count - done < period ? operand->byte_count - done : period;
    memcpy(view->lowest + done, view->lowest, bytes);
  }
}

/* Of two operands each value meets each, of three some. */
static void fill_crossed(const case_buffer *view, const tm_operand *operand, uint32_t input) {
  static const uint64_t periods[] = { 1, CASE_SPECIALS, CASE_SPECIALS };
  const uint64_t step = tm_format_find(operand->format)->block_bytes;
  for (uint64_t i = 0; (i + 1) * step <= operand->byte_count; i++)
    special_element(operand->format, input < 2 ? i / periods[input] : i * 3 + i / periods[2] * 5, view->lowest + i * step);
}

/* ---- sums that cancel ---- */

/* Makes the second half of an axis the first one again, negated if asked. */
static void mirror(const tm_operand *operand, uint32_t axis, uint32_t along, char *from, bool negate) {
  const tm_format_info *info = tm_format_find(operand->format);
  if (axis == operand->rank) {
    const tm_codec *codec = tm_codec_find(operand->format);
    const uint64_t half = (axis == along + 1 ? operand->dims[along] / info->block_elements : operand->dims[along]) / 2;
    char *to = from + (int64_t)half * operand->strides_bytes[along];
    double value[256];
    memmove(to, from, info->block_bytes);
    if (!negate || codec == NULL) return;
    codec->decode(from, info->block_elements, value);
    for (uint32_t i = 0; i < info->block_elements; i++) value[i] = -value[i];
    codec->encode(value, info->block_elements, to);
    return;
  }
  uint64_t steps = axis + 1 == operand->rank ? operand->dims[axis] / info->block_elements : operand->dims[axis];
  if (axis == along) steps /= 2;
  for (uint64_t i = 0; i < steps; i++) mirror(operand, axis + 1, along, from + (int64_t)i * operand->strides_bytes[axis], negate);
}

/* The axis that a sum of this operation runs along; UINT32_MAX if it has none. */
static uint32_t summed_axis(const kernel_case *c, uint32_t input) {
  const tm_operand *x = &c->operands[input];
  const uint32_t op = c->operation.op;
  if (op == TM_OP_MATMUL || op == TM_OP_MATMUL_SCALED) {
    const tm_matmul_attributes *attributes = c->operation.attributes;
    const bool k_is_last = input == 0 ? attributes->transpose_a == 0 : attributes->transpose_b != 0;
    return input > 1 ? UINT32_MAX : k_is_last ? x->rank - 1 : x->rank - 2;
  }
  if (op != TM_OP_SUM && op != TM_OP_MEAN) return UINT32_MAX;
  const uint32_t axes = c->attributes.reduce.axes;
  return axes == 0 ? UINT32_MAX : (uint32_t)__builtin_ctz(axes);
}

/* Each term meets its negative, so that what is left is rounding: the hardest data for a bound on sums. */
static void make_cancelling(const kernel_case *c, image *inputs) {
  for (uint32_t i = 0; i < c->operation.input_count; i++) {
    const uint32_t along = summed_axis(c, i);
    if (along < c->operands[i].rank && c->operands[i].element_count != 0)
      mirror(&c->operands[i], 0, along, (char *)inputs[i].bytes + inputs[i].first, i == 0);
  }
}

/* Equal values say little about a sum: there they are replaced by values that cancel. */
static bool is_cancelling(const question *q) { return q->temper == TEMPER_CONSTANT && summed_axis(&q->c, 0) != UINT32_MAX; }

void image_fill_inputs(image *inputs, const question *q, uint64_t *state) {
  const kernel_case *c = &q->c;
  for (uint32_t i = 0; i < c->operation.input_count; i++) {
    const image *one = &inputs[i];
    const case_buffer view = { one->bytes, one->size, one->bytes + one->first, one->bytes + one->lowest };
    (c->plan.rank != 0 ? fill_often : buffer_fill)(&view, &c->operands[i], is_cancelling(q) ? TEMPER_PLAIN : q->temper, state);
    if (q->sweeps) fill_in_order(&view, &c->operands[i]);
    if (q->crosses && has_specials(c->operands[i].format)) fill_crossed(&view, &c->operands[i], i);
    case_fill_special(c, i, one->bytes + one->lowest, state);
  }
  if (is_cancelling(q)) make_cancelling(c, inputs);
}
