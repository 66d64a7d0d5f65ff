/* SPDX-License-Identifier: Apache-2.0 */
/* process_children.h - processes that somebody started and left behind. */
#ifndef CONFORMANCE_PROCESS_CHILDREN_H
#define CONFORMANCE_PROCESS_CHILDREN_H

#include <stdint.h>
#include <sys/types.h>

#define PROCESS_MOST_CHILDREN 1024u

/* Of this process; those that ended and were not waited for are among them.  Where there are as many as it holds there may be
   more, and then nobody is taken for new. */
typedef struct process_children {
  pid_t    items[PROCESS_MOST_CHILDREN];
  uint32_t count;
} process_children;

/* Whose parent ends becomes a child of this process, and no stranger's. */
void process_children_adopt(void);
void process_children_read(process_children *out);
/* Ends those that were not there before, and theirs; how many still ran. */
uint32_t process_children_end(const process_children *before);
/* How many that were not there before still run; who is ending gets a moment to do so. */
uint32_t process_children_count(const process_children *before);

#endif
