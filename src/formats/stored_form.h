/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stored_form.h - tensors that a file holds otherwise than they are used (little-endian, the last axis fastest): with their
 * numbers turned around, with the first axis fastest, as numbers of varying length, or with anything in bits that nobody uses.
 * They are turned into what is used while they are read, and never mapped.
 */
#ifndef TM_FORMATS_STORED_FORM_H
#define TM_FORMATS_STORED_FORM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "formats/archive.h"

/* The most bytes that a unit may have: the largest block and the largest number fit. */
#define TM_STORED_UNIT_BYTES 512u

/* Numbers from `first` on lie in the bytes [offset, end) of the file, up to where the next run begins. */
typedef struct tm_number_run {
  uint64_t first;
  uint64_t offset;
  uint64_t end;
} tm_number_run;

typedef struct tm_stored_form {
  const char          *refusal;         /* why it cannot be read, "its ..."; or NULL */
  uint32_t             unit_bytes;      /* of an element, a block or a number, when it is used */
  bool                 is_big_endian;
  bool                 is_first_axis_fastest;
  bool                 is_varint;       /* of the runs: 7 bits a byte, else unit_bytes each */
  uint8_t              padding_mask;    /* bits of the last byte that belong to no element: 0 when it is used */
  const tm_number_run *runs;            /* NULL: one unit after another from the tensor's offset on */
  uint64_t             run_count;
  uint64_t             run_bytes;       /* from the tensor's offset to the last run's end */
} tm_stored_form;

/* What a tensor takes of its file, from its offset on. */
uint64_t tm_stored_bytes(const tm_archive_tensor *tensor);

/* As tm_archive_read, of a whole tensor that has a form and of bytes inside it. */
tm_status tm_stored_form_read(const tm_archive_tensor *tensor, const tm_file *file, uint64_t offset, void *out_data, uint64_t bytes,
                              tm_error *error);

#endif
