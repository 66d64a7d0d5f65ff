/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/byte_order.h"

#include <stddef.h>
#include <string.h>

/* Numbers of one width, one after another. */
typedef struct span {
  uint16_t offset;              /* in the block */
  uint8_t  width;               /* bytes of each; 0: no further span */
  uint8_t  count;
} span;

#define MOST_SPANS 3

typedef struct block_row {
  uint32_t format;
  span     spans[MOST_SPANS];
} block_row;

/*
 * What the reference implementation of these formats reads and writes as numbers of 16 and 32 bits; all else in a block is
 * single bytes.  The 32 fifth bits of q5 and the signs of iq3_xxs are declared as bytes there, but handled as 32-bit
 * numbers.  IQ2_XXS is left out: that implementation writes its grid indices as one number and reads them as bytes, so no
 * file of the other order can be told right from wrong.
 */
static const block_row block_rows[] = {
  { TM_FORMAT_Q4_0, { { 0, 2, 1 } } },
  { TM_FORMAT_Q4_1, { { 0, 2, 2 } } },
  { TM_FORMAT_Q5_0, { { 0, 2, 1 }, { 2, 4, 1 } } },
  { TM_FORMAT_Q5_1, { { 0, 2, 2 }, { 4, 4, 1 } } },
  { TM_FORMAT_Q8_0, { { 0, 2, 1 } } },
  { TM_FORMAT_Q8_1, { { 0, 2, 2 } } },
  { TM_FORMAT_Q2_K, { { 80, 2, 2 } } },
  { TM_FORMAT_Q3_K, { { 108, 2, 1 } } },
  { TM_FORMAT_Q4_K, { { 0, 2, 2 } } },
  { TM_FORMAT_Q5_K, { { 0, 2, 2 } } },
  { TM_FORMAT_Q6_K, { { 208, 2, 1 } } },
  { TM_FORMAT_Q8_K, { { 0, 4, 1 }, { 260, 2, 16 } } },
  { TM_FORMAT_IQ2_XS, { { 0, 2, 33 } } },
  { TM_FORMAT_IQ3_XXS, { { 0, 2, 1 }, { 66, 4, 8 } } },
  { TM_FORMAT_IQ1_S, { { 0, 2, 1 }, { 34, 2, 8 } } },
  { TM_FORMAT_IQ4_NL, { { 0, 2, 1 } } },
  { TM_FORMAT_IQ3_S, { { 0, 2, 1 } } },
  { TM_FORMAT_IQ2_S, { { 0, 2, 1 } } },
  { TM_FORMAT_IQ4_XS, { { 0, 2, 2 } } },
  { TM_FORMAT_IQ1_M, { { 48, 2, 4 } } },
  { TM_FORMAT_TQ1_0, { { 52, 2, 1 } } },
  { TM_FORMAT_TQ2_0, { { 64, 2, 1 } } },
  { TM_FORMAT_MXFP4, { { 0, 0, 0 } } },
  { TM_FORMAT_NVFP4, { { 0, 0, 0 } } },
  { TM_FORMAT_Q1_0, { { 0, 2, 1 } } },
  { TM_FORMAT_Q2_0, { { 0, 2, 1 } } },
};

static const block_row *find_block(uint32_t format) {
  for (size_t i = 0; i < sizeof block_rows / sizeof block_rows[0]; i++)
    if (block_rows[i].format == format) return &block_rows[i];
  return NULL;
}

bool tm_byte_order_is_known(const tm_format_info *info) {
  return info->kind != TM_KIND_BLOCK || find_block(info->format) != NULL;
}

static void swap_numbers(unsigned char *data, uint32_t width, uint64_t count) {
  for (uint64_t i = 0; i < count; i++, data += width) {
    for (uint32_t low = 0, high = width - 1; low < high; low++, high--) {
      const unsigned char byte = data[low];
      data[low] = data[high];
      data[high] = byte;
    }
  }
}

static void swap_blocks(const block_row *row, uint32_t block_bytes, unsigned char *data, uint64_t count) {
  for (uint64_t i = 0; i < count; i++, data += block_bytes)
    for (size_t s = 0; s < MOST_SPANS && row->spans[s].width != 0; s++)
      swap_numbers(data + row->spans[s].offset, row->spans[s].width, row->spans[s].count);
}

static void swap_u16(unsigned char *data, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    uint16_t number;
    memcpy(&number, data + 2 * i, sizeof number);
    number = __builtin_bswap16(number);
    memcpy(data + 2 * i, &number, sizeof number);
  }
}

static void swap_u32(unsigned char *data, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    uint32_t number;
    memcpy(&number, data + 4 * i, sizeof number);
    number = __builtin_bswap32(number);
    memcpy(data + 4 * i, &number, sizeof number);
  }
}

static void swap_u64(unsigned char *data, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    uint64_t number;
    memcpy(&number, data + 8 * i, sizeof number);
    number = __builtin_bswap64(number);
    memcpy(data + 8 * i, &number, sizeof number);
  }
}

/* A whole tensor may be so, so each number is one instruction. */
static void swap_plain(unsigned char *data, uint32_t width, uint64_t count) {
  if (width == 2) swap_u16(data, count);
  if (width == 4) swap_u32(data, count);
  if (width == 8) swap_u64(data, count);
}

void tm_byte_order_swap(const tm_format_info *info, void *data, uint64_t block_count) {
  if (info->kind == TM_KIND_BLOCK) swap_blocks(find_block(info->format), info->block_bytes, data, block_count);
  else if (info->kind == TM_KIND_COMPLEX) swap_plain(data, info->block_bytes / 2, 2 * block_count);
  else if (info->block_elements == 1) swap_plain(data, info->block_bytes, block_count);
}
