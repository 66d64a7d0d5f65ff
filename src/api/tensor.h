/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - a tensor of the application: an operand and where its first element lies. */
#ifndef TM_API_TENSOR_H
#define TM_API_TENSOR_H

#include "api/context.h"

struct tm_tensor {
  tm_context *context;
  tm_operand  operand;
  char       *data;                     /* address of the first element */
  char       *lowest;                   /* of the memory that it may touch */
  uint64_t    extent_bytes;             /* from lowest on */
  void       *owned;                    /* NULL: somebody else's memory */
  uint64_t    owned_bytes;
  struct tm_checkpoint *checkpoint;     /* whose file it lies in, or NULL */
  bool        read_only;
  uint64_t    origin;                   /* of a constant: stands for its bytes (execute/runner.h); else 0 */
};

/* Completes a layout of the application; all strides 0 with more than one element stand for dense. */
tm_status tm_layout_complete(const tm_operand *layout, tm_operand *out_operand, tm_error *error);

/* Memory of its own, uninitialised. */
tm_status tm_tensor_make(tm_context *context, const tm_operand *operand, tm_tensor **out_tensor, tm_error *error);
/* Read-only view of [data, data + bytes), dense. */
tm_status tm_tensor_borrow(tm_context *context, const tm_operand *operand, const void *data, tm_tensor **out_tensor, tm_error *error);

/* Whether all are there.  `what` is for messages.   TM_ERROR_ARGUMENT */
tm_status tm_tensors_check(tm_tensor *const *tensors, uint32_t count, const char *what, tm_error *error);
/* Whether the outputs may be written, and overlap neither inputs, each other nor themselves.   TM_ERROR_ARGUMENT */
tm_status tm_outputs_check(tm_tensor *const *inputs, uint32_t input_count, tm_tensor *const *outputs, uint32_t output_count,
                           tm_error *error);
/* After they were read: whether those in mapped files are what they were.   TM_ERROR_CHANGED, TM_ERROR_IO */
tm_status tm_files_check(tm_tensor *const *inputs, uint32_t input_count, tm_error *error);

#endif
