/* SPDX-License-Identifier: Apache-2.0 */
/* sim_judge.h - what a described device says of an operation: yes with its price, or no with all that would make it a yes. */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "sim_description.h"

/* Fills everything of the answer but struct_size. */
void sim_judge(const sim_description *description, const tm_operation *operation, tm_answer *out_answer);

#endif
