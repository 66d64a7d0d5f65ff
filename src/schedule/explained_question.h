/* SPDX-License-Identifier: Apache-2.0 */
/* explained_question.h - what every candidate said of each distinct request of a graph, at the prices of one moment. */
#ifndef TM_SCHEDULE_EXPLAINED_QUESTION_H
#define TM_SCHEDULE_EXPLAINED_QUESTION_H

#include "schedule/graph_explanation.h"

/* Fills questions and labels of an explanation whose problem is there, and gives the problem's labels the same prices, so that
   all that follows adds up.   TM_ERROR_NO_MEMORY */
tm_status tm_explained_questions_make(tm_plan_explanation *explanation, tm_error *error);

#endif
