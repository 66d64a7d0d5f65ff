/* SPDX-License-Identifier: Apache-2.0 */
/* The probe with the fake built-ins in place of the library's own. */
#include "fake_builtins.h"
