/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/value_scan.h"

#include <string.h>

#include "base/checked.h"
#include "tensor/scale_fields.h"

typedef enum value_class { CLASS_FINITE, CLASS_NEG_INF, CLASS_POS_INF, CLASS_NAN } value_class;

/* A float format by its bits: with the sign bit cleared what is above `largest` is NaN, and what equals it infinite or, where the
   format has no infinity, its largest number. */
typedef struct float_bits {
  uint32_t format;
  uint32_t bytes;
  uint64_t sign;                /* 0: there is none */
  uint64_t largest;
  bool     has_infinity;
  uint32_t parts;               /* numbers in an element */
} float_bits;

static const float_bits float_rows[] = {
  { TM_FORMAT_F64, 8, UINT64_C(1) << 63, UINT64_C(0x7ff0000000000000), true, 1 },
  { TM_FORMAT_F32, 4, UINT64_C(1) << 31, 0x7f800000, true, 1 },
  { TM_FORMAT_F16, 2, 0x8000, 0x7c00, true, 1 },
  { TM_FORMAT_BF16, 2, 0x8000, 0x7f80, true, 1 },
  { TM_FORMAT_F8_E4M3FN, 1, 0x80, 0x7e, false, 1 },
  { TM_FORMAT_F8_E5M2, 1, 0x80, 0x7c, true, 1 },
  { TM_FORMAT_F8_E8M0, 1, 0, 0xfe, false, 1 },
  { TM_FORMAT_C64, 4, UINT64_C(1) << 31, 0x7f800000, true, 2 },
};

static const float_bits *find_float(uint32_t format) {
  for (size_t i = 0; i < sizeof float_rows / sizeof float_rows[0]; i++)
    if (float_rows[i].format == format) return &float_rows[i];
  return NULL;
}

/* The scales of blocks are floats, too. */
static const float_bits *float_of_scale(tm_scale_kind kind) {
  switch (kind) {
    case TM_SCALE_F32: return find_float(TM_FORMAT_F32);
    case TM_SCALE_E8M0: return find_float(TM_FORMAT_F8_E8M0);
    case TM_SCALE_E4M3: return find_float(TM_FORMAT_F8_E4M3FN);
    case TM_SCALE_F16:
    case TM_SCALE_F16_APART: break;
  }
  return find_float(TM_FORMAT_F16);
}

bool tm_value_scan_knows(const tm_format_info *info) {
  return info->kind != TM_KIND_BLOCK || tm_scale_fields_find(info->format) != NULL;
}

void tm_value_scan_init(tm_value_scan *scan) { *scan = (tm_value_scan){ .first_nan = TM_NO_UNIT, .first_inf = TM_NO_UNIT }; }

void tm_value_scan_merge(tm_value_scan *scan, const tm_value_scan *part) {
  scan->nan_count += part->nan_count;
  scan->pos_inf_count += part->pos_inf_count;
  scan->neg_inf_count += part->neg_inf_count;
  scan->first_nan = tm_min_u64(scan->first_nan, part->first_nan);
  scan->first_inf = tm_min_u64(scan->first_inf, part->first_inf);
  scan->has_nonzero = scan->has_nonzero || part->has_nonzero;
}

/* ---- one by one: where there is something to find ---- */

static value_class classify(const float_bits *row, uint64_t bits) {
  const uint64_t magnitude = bits & ~row->sign;
  if (magnitude > row->largest) return CLASS_NAN;
  if (!row->has_infinity || magnitude < row->largest) return CLASS_FINITE;
  return (bits & row->sign) != 0 ? CLASS_NEG_INF : CLASS_POS_INF;
}

static void count(tm_value_scan *scan, value_class found, uint64_t unit) {
  if (found == CLASS_FINITE) return;
  uint64_t *first = found == CLASS_NAN ? &scan->first_nan : &scan->first_inf;
  scan->nan_count += found == CLASS_NAN;
  scan->pos_inf_count += found == CLASS_POS_INF;
  scan->neg_inf_count += found == CLASS_NEG_INF;
  if (unit < *first) *first = unit;
}

static uint64_t load_bits(const unsigned char *bytes, uint32_t size) {
  uint64_t bits = 0;
  for (uint32_t i = 0; i < size; i++) bits |= (uint64_t)bytes[i] << (8 * i);
  return bits;
}

static value_class worse(value_class a, value_class b) { return a > b ? a : b; }

static void count_elements(tm_value_scan *scan, const float_bits *row, const unsigned char *data, uint64_t first, uint64_t units) {
  for (uint64_t u = 0; u < units; u++) {
    value_class found = CLASS_FINITE;
    for (uint32_t p = 0; p < row->parts; p++, data += row->bytes) found = worse(found, classify(row, load_bits(data, row->bytes)));
    count(scan, found, first + u);
  }
}

static void count_blocks(tm_value_scan *scan, const tm_scale_fields *fields, uint32_t block_bytes, const unsigned char *data,
                         uint64_t first, uint64_t units) {
  const float_bits *row = float_of_scale(fields->kind);
  for (uint64_t u = 0; u < units; u++, data += block_bytes) {
    value_class found = CLASS_FINITE;
    for (uint32_t f = 0; f < fields->count; f++) found = worse(found, classify(row, tm_scale_bits(fields, f, data)));
    count(scan, found, first + u);
  }
}

/* ---- many at once: where there mostly is nothing ---- */

/* So far ahead memory is asked for; beyond the end of the data that is harmless. */
#define PREFETCH_BYTES 4096
#define PREFETCH(pointer) __builtin_prefetch((pointer) + PREFETCH_BYTES)

/* What a look at all bits says: a sign bit in `alarm` for a number that is not finite, anything in `any` for one that is not 0. */
typedef struct quick_look {
  uint64_t alarm;
  uint64_t any;
} quick_look;

/* The pattern in each place of a 64-bit word. */
static uint64_t repeat(uint64_t pattern, uint32_t bytes) {
  uint64_t word = pattern;
  for (uint32_t width = bytes; width < 8; width *= 2) word |= word << (8 * width);
  return word;
}

/* A magnitude plus what the least one that is not finite lacks to the sign bit sets that bit exactly if it is not finite, and never
   carries into the next: so numbers are looked at together, as many as there are in several words. */
typedef uint64_t words __attribute__((vector_size(16)));

typedef struct looked_words {
  words any;
  words alarm;
} looked_words;

static void look_at(looked_words *look, const unsigned char *data, uint64_t sign, uint64_t lack) {
  words group;
  memcpy(&group, data, sizeof group);
  group &= ~sign;
  look->any |= group;
  look->alarm |= group + lack;
}

/* Two groups a turn, each with sums of its own, so that none waits for the other. */
static quick_look look_at_words(const unsigned char *data, uint64_t bytes, uint64_t sign, uint64_t lack) {
  looked_words even = { { 0 }, { 0 } }, odd = { { 0 }, { 0 } };
  unsigned char rest[2 * sizeof(words)] = { 0 };
  for (; bytes >= sizeof rest; bytes -= sizeof rest, data += sizeof rest) {
    PREFETCH(data);
    look_at(&even, data, sign, lack);
    look_at(&odd, data + sizeof(words), sign, lack);
  }
  memcpy(rest, data, (size_t)bytes);
  look_at(&even, rest, sign, lack);
  look_at(&odd, rest + sizeof(words), sign, lack);
  const words any = even.any | odd.any, alarm = (even.alarm | odd.alarm) & sign;
  return (quick_look){ alarm[0] | alarm[1], any[0] | any[1] };
}

static quick_look look_at_floats(const float_bits *row, const unsigned char *data, uint64_t bytes) {
  const uint64_t least = row->has_infinity ? row->largest : row->largest + 1;
  return look_at_words(data, bytes, repeat(row->sign, row->bytes), repeat(row->sign - least, row->bytes));
}

static quick_look look_at_f16_scales(const tm_scale_fields *fields, uint32_t block_bytes, const unsigned char *data,
                                     uint64_t units) {
  uint32_t alarm = 0, any = 0;
  for (uint32_t f = 0; f < fields->count; f++) {
    const unsigned char *at = data + fields->offsets[f];
    for (uint64_t u = 0; u < units; u++, at += block_bytes) {
      PREFETCH(at);
      const uint32_t magnitude = ((uint32_t)at[0] | (uint32_t)at[1] << 8) & 0x7fff;
      any |= magnitude;
      alarm |= magnitude + 0x400;
    }
  }
  return (quick_look){ alarm & 0x8000, any };
}

static quick_look look_at_byte_scales(const tm_scale_fields *fields, uint32_t block_bytes, const unsigned char *data,
                                      uint64_t units) {
  const float_bits *row = float_of_scale(fields->kind);
  const uint32_t mask = row->sign == 0 ? 0xff : 0x7f;
  uint32_t alarm = 0, any = row->sign == 0;     /* a power of two is never zero */
  for (uint32_t f = 0; f < fields->count; f++) {
    const unsigned char *at = data + fields->offsets[f];
    for (uint64_t u = 0; u < units; u++, at += block_bytes) {
      PREFETCH(at);
      const uint32_t magnitude = at[0] & mask;
      any |= magnitude;
      alarm |= magnitude + 1;
    }
  }
  return (quick_look){ alarm & (mask + 1), any };
}

/* Few formats, large blocks: each scale by itself. */
static quick_look look_at_other_scales(const tm_scale_fields *fields, uint32_t block_bytes, const unsigned char *data,
                                       uint64_t units) {
  const float_bits *row = float_of_scale(fields->kind);
  quick_look look = { 0, 0 };
  for (uint64_t u = 0; u < units; u++, data += block_bytes) {
    PREFETCH(data);
    const uint32_t bits = tm_scale_bits(fields, 0, data);
    look.any |= bits & ~row->sign;
    look.alarm |= classify(row, bits) != CLASS_FINITE;
  }
  return look;
}

static quick_look look_at_scales(const tm_scale_fields *fields, uint32_t block_bytes, const unsigned char *data, uint64_t units) {
  switch (fields->kind) {
    case TM_SCALE_F16: return look_at_f16_scales(fields, block_bytes, data, units);
    case TM_SCALE_E8M0:
    case TM_SCALE_E4M3: return look_at_byte_scales(fields, block_bytes, data, units);
    case TM_SCALE_F32:
    case TM_SCALE_F16_APART: break;
  }
  return look_at_other_scales(fields, block_bytes, data, units);
}

void tm_value_scan_add(tm_value_scan *scan, const tm_format_info *info, const void *data, uint64_t first, uint64_t units) {
  const uint64_t bytes = units * info->block_bytes;
  const tm_scale_fields *fields = tm_scale_fields_find(info->format);
  const float_bits *row = fields == NULL ? find_float(info->format) : NULL;
  quick_look look;
  if (fields != NULL) {
    look = look_at_scales(fields, info->block_bytes, data, units);
    if (look.alarm != 0) count_blocks(scan, fields, info->block_bytes, data, first, units);
  } else if (row != NULL && row->sign != 0) {
    look = look_at_floats(row, data, bytes);
    if (look.alarm != 0) count_elements(scan, row, data, first, units);
  } else {
    look = look_at_words(data, bytes, 0, 0);
    if (row != NULL) count_elements(scan, row, data, first, units);
    if (row != NULL) look.any = 1;      /* a power of two is never zero */
  }
  if (look.any != 0) scan->has_nonzero = true;
}
