/* SPDX-License-Identifier: Apache-2.0 */
/* write_request.h - what a caller wants written, checked and made the beginning of a layout. */
#ifndef TM_FORMATS_WRITE_REQUEST_H
#define TM_FORMATS_WRITE_REQUEST_H

#include "formats/checkpoint_writer.h"
#include "formats/write_layout.h"

/* Tensors and metadata; names are copied, dims and metadata stay the caller's.   TM_ERROR_ARGUMENT, TM_ERROR_NO_MEMORY */
tm_status tm_write_layout_fill(tm_write_layout *layout, const tm_write_request *request, tm_error *error);
/* What was the caller's is looked at no more. */
void      tm_write_layout_forget(tm_write_layout *layout);

#endif
