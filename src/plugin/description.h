/* SPDX-License-Identifier: Apache-2.0 */
/* description.h - the texts with which a backend describes itself and its devices, which may be anything. */
#ifndef TM_PLUGIN_DESCRIPTION_H
#define TM_PLUGIN_DESCRIPTION_H

#include "plugin/inventory.h"

/* What claims to be longer is no text at all, and is not read. */
#define TM_LONGEST_DESCRIPTION 4096u
#define TM_NO_DESCRIPTION "not UTF-8 without control characters"

/* Whether its bytes can be looked at. */
bool tm_description_is_readable(tm_string text);
/* Whether it is what the contract wants of a text: UTF-8 without control characters. */
bool tm_description_is_text(tm_string text);
/* The first place where it is none is kept (slot->odd_text), for whoever tries the backend; the words name it. */
void tm_description_doubt(tm_backend_slot *slot, tm_string text, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
