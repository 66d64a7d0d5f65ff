/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/system_error.h"

#include <stdio.h>
#include <string.h>

tm_system_error_text tm_system_error(int number) {
  tm_system_error_text result;
  if (strerror_r(number, result.text, sizeof result.text) != 0)
    (void)snprintf(result.text, sizeof result.text, "error %d", number);
  return result;
}
