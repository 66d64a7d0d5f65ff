/* SPDX-License-Identifier: Apache-2.0 */
/* left_out.h - who is no candidate for anything, as the application's own lists of devices leave it out. */
#ifndef TM_PLUGIN_LEFT_OUT_H
#define TM_PLUGIN_LEFT_OUT_H

#include <stddef.h>

#include "plugin/inventory.h"

#define TM_LEFT_OUT_BYTES 192u

/* "; left out by request: a, b": backends, as those have no devices here.  "" if there is none; what does not fit is
   counted. */
void tm_left_out_describe(const tm_inventory *inventory, char out_text[TM_LEFT_OUT_BYTES]);

#endif
