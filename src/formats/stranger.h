/* SPDX-License-Identifier: Apache-2.0 */
/* stranger.h - files that people hand over instead of a model, recognised so that the message can say what they are. */
#ifndef TM_FORMATS_STRANGER_H
#define TM_FORMATS_STRANGER_H

#include "formats/reader.h"

/* Is it surely something else than a model file? */
bool tm_stranger_is_known(const tm_head *head);

/* Text that begins as a JSON object does: what an index may be. */
bool tm_stranger_is_json_object(const tm_head *head);

/* Fails with TM_ERROR_CORRUPT and says what the file is, as far as can be told. */
tm_status tm_stranger_refuse(const tm_head *head, const char *label, tm_error *error);

#endif
