/* SPDX-License-Identifier: Apache-2.0 */
#define __STDC_WANT_IEC_60559_BFP_EXT__ 1
#include "base/float_mode.h"

#include <fenv.h>
#include <string.h>

_Static_assert(sizeof(femode_t) <= sizeof(tm_float_mode), "the modes fit");

void tm_float_mode_save(tm_float_mode *out_mode) {
  femode_t mode;
  memset(out_mode, 0, sizeof *out_mode);
  if (fegetmode(&mode) == 0) memcpy(out_mode->opaque, &mode, sizeof mode);
}

void tm_float_mode_restore(const tm_float_mode *mode) {
  tm_float_mode now;
  tm_float_mode_save(&now);
  if (memcmp(&now, mode, sizeof now) == 0) return;
  femode_t wanted;
  memcpy(&wanted, mode->opaque, sizeof wanted);
  (void)fesetmode(&wanted);
}

bool tm_float_mode_is_usual(void) {
  const volatile float least = 0x1p-149f, smallest_normal = 0x1p-126f, half = 0.5f;
  return fegetround() == FE_TONEAREST && least + least != 0 && smallest_normal * half != 0;
}
