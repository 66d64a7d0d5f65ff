/* SPDX-License-Identifier: Apache-2.0 */
/* opencl_handlers.h - signal handlers belong to the process, but some drivers install their own when they start. */
#ifndef OPENCL_HANDLERS_H
#define OPENCL_HANDLERS_H

typedef struct opencl_handlers opencl_handlers;

/* Notes those of the process; NULL without memory for it. */
opencl_handlers *opencl_handlers_save(void);
/* Puts back what was there, if it is not any more, and forgets it. */
void opencl_handlers_restore(opencl_handlers *handlers);

#endif
