/* SPDX-License-Identifier: Apache-2.0 */
/* answer.h - what a backend answered, made sound: whatever it wrote, the host can work with the result. */
#ifndef TM_PLUGIN_ANSWER_H
#define TM_PLUGIN_ANSWER_H

#include <stdbool.h>

#include "tensormorph/plugin.h"

/* Costs beyond this (eleven days) are nonsense; sums of a few of them still fit 64 bits. */
#define TM_LARGEST_COST_NS (UINT64_C(1000000000) * 1000000)

/* What claims to be longer is no text, and is not read. */
#define TM_LONGEST_SOUND_TEXT 65536u

/* Operands beyond this are nothing that anybody holds, and so many operations take a slow device weeks: an honest cost of such work may
   be beyond all bounds. */
#define TM_ENDLESS_BYTES (UINT64_C(1) << 45)
#define TM_ENDLESS_FLOPS (UINT64_C(1) << 43)

/* Turns the answer into one that obeys the contract: unknown values become the weakest reading (refused, no promise, no
   change), counts and costs are bounded.  A yes to a question whose numerics it does not meet becomes a no. */
void tm_answer_make_sound(const tm_operation *operation, tm_answer *answer);

/* Of a sound answer: it was a yes at a price that is no time (negative, not a number, beyond the largest), which breaks the
   promise that an answer is. */
bool tm_answer_has_no_price(const tm_answer *answer);

#endif
