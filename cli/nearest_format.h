/* SPDX-License-Identifier: Apache-2.0 */
/* nearest_format.h - which format somebody meant who calls it as other programs do, or mistyped it. */
#ifndef TM_CLI_NEAREST_FORMAT_H
#define TM_CLI_NEAREST_FORMAT_H

#include "nearest_name.h"

void tm_nearest_format_find(tm_nearest_name *out_nearest, const char *name);

#endif
