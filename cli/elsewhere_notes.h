/* SPDX-License-Identifier: Apache-2.0 */
/* elsewhere_notes.h - why work of a job ended on another device than those that the user asked for. */
#ifndef TM_CLI_ELSEWHERE_NOTES_H
#define TM_CLI_ELSEWHERE_NOTES_H

#include "preferences.h"
#include "tensormorph/tensormorph.h"

#define TM_ELSEWHERE_NOTES 8

typedef struct tm_elsewhere_notes {
  uint32_t count;
  char     texts[TM_ELSEWHERE_NOTES][512];
} tm_elsewhere_notes;

/* One note a dtype of the job's rows and a device that was asked for, and one a backend that was asked for and has no device;
   none where nobody was, or all went there. */
void tm_elsewhere_notes_make(tm_elsewhere_notes *notes, tm_context *context, const tm_name_list *asked, uint32_t op, const tm_job *job);

/* Adds one a backend that was asked for and has no device: nothing "went" to it, or "goes". */
void tm_elsewhere_notes_absent(tm_elsewhere_notes *notes, tm_context *context, const tm_name_list *asked, const char *verb);
/* Adds one that names the backends which were left out by request, if there are such, as they are no candidates either; returns it, or "". */
const char *tm_elsewhere_notes_left_out(tm_elsewhere_notes *notes, tm_context *context);

#endif
