/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error.h - errors are values.  The first function that decides on an error records code and text with tm_fail; callers
 * only pass the status on.  A tm_error belongs to one call or one job, so nothing here is shared between threads.
 */
#ifndef TM_BASE_ERROR_H
#define TM_BASE_ERROR_H

#include "tensormorph/types.h"

/* Records `status` and a formatted text in `error` (NULL: only returns) and returns `status`.  Text that does not fit is cut. */
tm_status tm_fail(tm_error *error, tm_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* As tm_fail, and keeps an errno or driver number. */
tm_status tm_fail_native(tm_error *error, tm_status status, int64_t native_code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Prepends "text: " to what is recorded, for a caller that knows the file or tensor. */
void tm_error_prefix(tm_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* TM_OK -> "ok", TM_ERROR_IO -> "input/output error"; never NULL. */
const char *tm_status_name(tm_status status);

/* Returns from the calling function with the status if it is not TM_OK. */
#define TM_TRY(expression)                                \
  do {                                                    \
    const tm_status tm_try_status_ = (expression);        \
    if (tm_try_status_ != TM_OK) return tm_try_status_;   \
  } while (0)

/* A fresh error on the stack. */
#define TM_ERROR_INIT { sizeof(tm_error), TM_OK, 0, { 0 } }

#endif
