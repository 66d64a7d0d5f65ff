/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash_marks.h - what a process was doing with a device that had yet to prove itself, on disk while it does it.  A process
 * that ends meanwhile leaves its marks behind; the next one finds them and knows what not to try again.  [any thread]
 */
#ifndef TM_PLUGIN_CRASH_MARKS_H
#define TM_PLUGIN_CRASH_MARKS_H

#include "plugin/trial.h"

#define TM_NO_MARK UINT32_MAX

typedef struct tm_crash_marks tm_crash_marks;

/* Files are made in `folder`, which is copied, when the first mark is set.  may_map: lasting marks are kept, too.
   TM_ERROR_NO_MEMORY */
tm_status tm_crash_marks_open(tm_memory *memory, const char *folder, bool may_map, tm_log log, tm_crash_marks **out_marks,
                              tm_error *error);
/* Nothing is being done any more. */
void      tm_crash_marks_close(tm_crash_marks *marks);

/* Two small writes a mark: one here, one to take it back.  TM_NO_MARK (also for NULL) if there is no room or no file, and for
   what is compiled into this process and computes on the host's own cores: there is no driver that could end it, and whoever is
   killed is mostly at work there. */
uint32_t tm_crash_marks_set(tm_crash_marks *marks, const tm_device_slot *device, const char *call, const tm_work_kind *kind);
void     tm_crash_marks_clear(tm_crash_marks *marks, uint32_t mark);

/* How many calls of a kind of work are under way: a number in the file, which costs no system call. */
typedef struct tm_lasting_mark tm_lasting_mark;
/* That of a device and a kind of work, for as long as the marks; made once, so it is for the caller to keep.  Where none can be
   had, one that nobody will find. */
tm_lasting_mark *tm_crash_marks_last(tm_crash_marks *marks, const tm_device_slot *device, const tm_work_kind *kind);
void             tm_lasting_mark_enter(tm_lasting_mark *mark);
void             tm_lasting_mark_leave(tm_lasting_mark *mark);

/* One mark of a process that is no more.  Texts live during the visit. */
typedef struct tm_found_mark {
  const char  *backend;
  const char  *build_id;
  const char  *uuid;
  const char  *call;
  tm_work_kind kind;
} tm_found_mark;
typedef void (*tm_mark_visit_fn)(void *context, const tm_found_mark *mark);

/* Visits what ended processes left behind in the folder, of each process what is alike once, and removes it. */
void tm_crash_marks_collect(tm_memory *memory, const char *folder, tm_mark_visit_fn visit, void *context);
/* Visits what this process is doing, and leaves it there. */
void tm_crash_marks_visit_own(tm_memory *memory, const char *folder, tm_mark_visit_fn visit, void *context);

#endif
