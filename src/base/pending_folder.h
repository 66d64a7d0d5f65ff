/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pending_folder.h - the names of files that are being written, and how a set of them comes into its place.
 *
 *   NAME.<12 hexadecimal digits>.part    a file of a set that is being written; the digits are the set's
 *   NAME.<12 hexadecimal digits>.whole   the leader of a set that is complete: from here on the set is the one that counts, and who
 *                                        finds it without a living owner puts the rest in its place
 *
 * Only base/pending_*.c includes this.
 */
#ifndef TM_BASE_PENDING_FOLDER_H
#define TM_BASE_PENDING_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "tensormorph/types.h"

#define TM_PENDING_PART  ".part"
#define TM_PENDING_WHOLE ".whole"
#define TM_PENDING_ID_DIGITS 12u

typedef struct tm_pending_id {
  char digits[TM_PENDING_ID_DIGITS + 1];
} tm_pending_id;

/* A folder that stays the same one whatever becomes of its path. */
typedef struct tm_pending_folder {
  int         descriptor;       /* -1: none */
  char        label[160];       /* for messages */
} tm_pending_folder;

/* TM_ERROR_NOT_FOUND, TM_ERROR_IO */
tm_status tm_pending_folder_open(const char *path, tm_pending_folder *out_folder, tm_error *error);
void      tm_pending_folder_close(tm_pending_folder *folder);

/* Never the same twice. */
tm_pending_id tm_pending_id_make(void);
/* NULL without memory. */
char *tm_pending_name(tm_arena *arena, const char *name, const tm_pending_id *id, const char *ending);
/* Whether `entry` is NAME.<digits><ending>; tells the length of NAME, and the digits. */
bool tm_pending_name_parse(const char *entry, const char *ending, uint64_t *out_name_length, tm_pending_id *out_id);

/* Whether a file of such a name is to be believed: in a folder of everybody's only our own are.  false also for what is no file. */
bool tm_pending_is_trusted(const tm_pending_folder *folder, const char *name);

typedef enum tm_pending_claim {
  TM_PENDING_OURS,              /* the lock is held now */
  TM_PENDING_THEIRS,            /* somebody else has it */
  TM_PENDING_GONE,              /* what was opened is not under its name any more: whoever had it is done with it */
  TM_PENDING_UNKNOWN            /* the file system has no locks */
} tm_pending_claim;

/* Tries to take the lock by which others see that the owner of a leader, opened as `entry`, lives. */
tm_pending_claim tm_pending_claim_leader(const tm_pending_folder *folder, const char *entry, int descriptor);

/* 0, or the errno with which the system will refuse to remove or replace what is there; that it is not there is as good. */
int tm_pending_look_at_removal(const tm_pending_folder *folder, const char *name);

/* TM_OK: nothing is there.   TM_ERROR_IO (EEXIST) */
tm_status tm_pending_check_vacant(const tm_pending_folder *folder, const char *name, tm_error *error);
/* Puts a file where nothing is, also if something comes there at the same moment.   TM_ERROR_IO (EEXIST: something did) */
tm_status tm_pending_add(const tm_pending_folder *folder, const char *from, const char *to, tm_error *error);

/* "FOLDER/NAME: cannot be DONE: what the system says". */
tm_status tm_pending_fail(const tm_pending_folder *folder, const char *name, const char *done, int number, tm_error *error);

/* A complete set on its way: what is in `names` is still NAME.ID.part, or in its place already. */
typedef struct tm_pending_placement {
  const tm_pending_folder *folder;
  const tm_pending_id     *id;
  const char *const       *names;       /* without the leader; a file alone has none */
  uint64_t                 count;
  const char              *leader;      /* NAME.ID.whole */
  /* Of what was there before: they go, in this order, before the first new file comes.  Of a set the leader's old file goes too;
     that of a file alone is replaced at once. */
  const char *const       *old_names;
  uint64_t                 old_count;
} tm_pending_placement;

/* Puts it in its place.  At no moment do files of two sets stand there together.  When it fails, or the process ends, it can be
   done again.   TM_ERROR_IO, TM_ERROR_NO_MEMORY */
tm_status tm_pending_place(tm_arena *arena, const tm_pending_placement *placement, tm_error *error);
/* Makes what happened to the folder's names last. */
tm_status tm_pending_folder_sync(const tm_pending_folder *folder, tm_error *error);
/* That it is not there is as good. */
tm_status tm_pending_remove(const tm_pending_folder *folder, const char *name, tm_error *error);
tm_status tm_pending_rename(const tm_pending_folder *folder, const char *from, const char *to, tm_error *error);

#endif
