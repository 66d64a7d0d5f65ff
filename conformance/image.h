/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - the bytes of an operand between guards, placed as aligned as was declared and no better, with no memory before
 * and behind.  Where they are what a kernel is given, they end with a page, as the last tensor of a mapped file may.
 */
#ifndef CONFORMANCE_IMAGE_H
#define CONFORMANCE_IMAGE_H

#include "conformance/question.h"
#include "conformance/subject.h"

#define IMAGE_GUARD_BYTES 192u

typedef struct image {
  unsigned char *bytes;
  uint64_t       size;
  uint64_t       lowest;        /* offset of the first byte that the operand touches */
  uint64_t       first;         /* offset of its first element */
  uint64_t       touched;       /* from lowest on; rounded up to whole stores for an output */
  uint64_t       behind;        /* guard bytes, at least */
  void          *mapping;       /* of pages, a forbidden one at either end */
  tm_buffer     *buffer;        /* of the device, once it has one */
} image;

/* All guard bytes, with room for `bytes`, of which `below` lie before the first element.  False without memory. */
bool image_make(image *one, const subject *s, uint64_t below, uint64_t bytes, uint64_t alignment, bool is_written);
bool image_for(image *one, const subject *s, const tm_operand *operand, bool is_written);
/* The same bytes, without a buffer. */
bool image_copy(image *to, const image *from);
/* From now on nobody may write to it. */
void image_protect(const image *one);
/* Not the buffer, which is gone already; any image, also one that was never made. */
void image_drop(image *one);
/* As a kernel is given it. */
tm_binding image_binding(const image *one);

/* Fills the images of all inputs with what the question asks for. */
void image_fill_inputs(image *inputs, const question *q, uint64_t *state);

#endif
