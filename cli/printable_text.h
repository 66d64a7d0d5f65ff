/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printable_text.h - text from files made fit for a terminal: control characters and broken UTF-8 escaped, long names
 * shortened in the middle, sentences wrapped.  Widths are terminal cells.  Text is UTF-8 whatever the locale says.
 */
#ifndef TM_CLI_PRINTABLE_TEXT_H
#define TM_CLI_PRINTABLE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output_stream.h"

/* Bytes of the UTF-8 character that begins here, 0 if none does. */
size_t tm_printable_character(const char *text, size_t length);

/* Writes text with everything that could move a cursor, hide or forge output as \n \t \x1b \u202e; at most capacity - 1
   bytes and a NUL.  Returns the bytes written; a text that does not fit is cut between characters. */
size_t tm_printable_escape(const char *text, size_t length, char *out, size_t capacity);

/* The same for a sentence that was made for people: its backslashes stay as they are. */
size_t tm_printable_clean(const char *text, size_t length, char *out, size_t capacity);

/* Cells that an escaped text takes. */
size_t tm_printable_width(const char *text, size_t length);

/* Shortens an escaped, NUL-terminated text in place to `width` cells by a "..." in its middle. */
void tm_printable_shorten(char *text, size_t width);

/* Shortens a text in place to `most` bytes at most, after a word and with "..." behind it; "" where nothing has room. */
void tm_printable_end_at_word(char *text, size_t most);

/* Whether a character of several bytes shows nothing but changes what is shown. */
bool tm_printable_is_hidden(const char *text, size_t bytes, uint32_t *out_code);

/* What comes from a plugin, a file or a user reaches a terminal through these; whatever stands in it is printed as
   tm_printable_clean makes it. */

/* Returns the cells that it took. */
size_t tm_printable_print(tm_output_stream *stream, const char *text);
/* Prints words, breaking lines before column `width`; continued lines start at `indent`, as does the first, which is
   taken to be there already.  Ends with a newline.  width 0: no limit. */
void tm_printable_wrap(tm_output_stream *stream, const char *text, size_t indent, size_t width);
/* "head" and then words, which are broken as above and indented by the head, or by little where it takes most of the line. */
void tm_printable_sentence(tm_output_stream *stream, const char *head, const char *text, size_t width);
/* "name: words" likewise. */
void tm_printable_about(tm_output_stream *stream, const char *name, const char *text, size_t width);

#endif
