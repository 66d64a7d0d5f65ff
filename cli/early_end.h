/* SPDX-License-Identifier: Apache-2.0 */
/*
 * early_end.h - what was loaded into this process can end it as if all were well, by exit().  Then the command says so, and
 * its exit code is that of trouble.
 */
#ifndef TM_CLI_EARLY_END_H
#define TM_CLI_EARLY_END_H

/* From now on the end of the process comes too early, until it is expected. */
void tm_early_end_watch(void);
void tm_early_end_expect(void);

#endif
