/* SPDX-License-Identifier: Apache-2.0 */
/* wait_slice.h - the one finite timeout that a host gives a backend's wait; plugin.h tells backends. */
#ifndef TM_PLUGIN_WAIT_SLICE_H
#define TM_PLUGIN_WAIT_SLICE_H

/* Waiting is done in pieces, so that a caller who wants to go is seen. */
#define TM_WAIT_SLICE_NS UINT64_C(20000000)

#endif
