/* SPDX-License-Identifier: Apache-2.0 */
#include "printable_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SENTENCE_INDENT 4u      /* of lines below a head that is too wide to be indented by */

size_t tm_printable_character(const char *text, size_t length) {
  static const struct { uint8_t mask, lead; uint32_t least; } forms[] = {
    { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 } };
  if (length == 0) return 0;
  const uint8_t first = (uint8_t)text[0];
  for (size_t extra = 0; extra < 4; extra++) {
    if ((first & forms[extra].mask) != forms[extra].lead) continue;
    if (extra >= length) return 0;
    uint32_t code = first & (uint8_t)~forms[extra].mask;
    for (size_t i = 1; i <= extra; i++) {
      if (((uint8_t)text[i] & 0xc0) != 0x80) return 0;
      code = code << 6 | ((uint8_t)text[i] & 0x3f);
    }
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < forms[extra].least || code > 0x10ffff || surrogate ? 0 : extra + 1;
  }
  return 0;
}

static uint32_t decode(const char *text, size_t bytes) {
  static const uint8_t masks[] = { 0x7f, 0x1f, 0x0f, 0x07 };
  uint32_t code = (uint8_t)text[0] & masks[bytes - 1];
  for (size_t i = 1; i < bytes; i++) code = code << 6 | ((uint8_t)text[i] & 0x3f);
  return code;
}

typedef struct range {
  uint32_t first, last;
} range;

static bool in_ranges(uint32_t code, const range *ranges, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (code >= ranges[i].first && code <= ranges[i].last) return true;
  return false;
}

#define IN(code, ranges) in_ranges(code, ranges, sizeof(ranges) / sizeof(ranges)[0])

/* C1 controls, soft hyphen, zero-width and direction marks, line and paragraph separators, the byte order mark and tags: they
   show nothing but change what is shown.  The library has these too (src/base/text.c); a test holds the two together. */
static const range hidden[] = { { 0x80, 0x9f },     { 0xad, 0xad },     { 0x61c, 0x61c },   { 0x180e, 0x180e },
                                { 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff },
                                { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f } };
static const range combining[] = { { 0x300, 0x36f }, { 0x1ab0, 0x1aff }, { 0x1dc0, 0x1dff }, { 0x20d0, 0x20ff },
                                   { 0xfe00, 0xfe0f }, { 0xfe20, 0xfe2f } };
static const range wide[] = { { 0x1100, 0x115f }, { 0x2e80, 0x303e }, { 0x3041, 0xa4cf }, { 0xac00, 0xd7a3 },
                              { 0xf900, 0xfaff }, { 0xfe30, 0xfe6f }, { 0xff00, 0xff60 }, { 0xffe0, 0xffe6 },
                              { 0x1f300, 0x1f64f }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd } };

static size_t cells(const char *text, size_t bytes) {
  if (bytes < 2) return 1;
  const uint32_t code = decode(text, bytes);
  if (IN(code, combining)) return 0;
  return IN(code, wide) ? 2 : 1;
}

static size_t escape_hex(const char *prefix, uint32_t value, int digits, char *out) {
  static const char hex[] = "0123456789abcdef";
  size_t length = strlen(prefix);
  memcpy(out, prefix, length);
  for (int i = digits - 1; i >= 0; i--) out[length++] = hex[value >> (4 * i) & 0xf];
  return length;
}

/* The printable form of one character (bytes 0: a byte that is none) in out[10]; returns its length. */
static size_t escape_one(const char *text, size_t bytes, char *out) {
  const uint8_t c = (uint8_t)text[0];
  if (bytes == 0) return escape_hex("\\x", c, 2, out);
  if (bytes == 1) {
    static const char named[] = "\n\t\r\\", letters[] = "ntr\\";
    const char *found = c == 0 ? NULL : strchr(named, c);
    if (found != NULL) {
      out[0] = '\\';
      out[1] = letters[found - named];
      return 2;
    }
    if (c < 0x20 || c == 0x7f) return escape_hex("\\x", c, 2, out);
  } else {
    const uint32_t code = decode(text, bytes);
    if (IN(code, hidden)) return code > 0xffff ? escape_hex("\\U", code, 8, out) : escape_hex("\\u", code, 4, out);
  }
  memcpy(out, text, bytes);
  return bytes;
}

static size_t escape(const char *text, size_t length, bool keep_backslash, char *out, size_t capacity) {
  size_t used = 0;
  for (size_t i = 0; i < length;) {
    const uint8_t c = (uint8_t)text[i];
    if (c >= 0x20 && c < 0x7f && (c != '\\' || keep_backslash)) {
      if (used + 1 >= capacity) break;
      out[used++] = text[i++];
      continue;
    }
    char         piece[12];
    const size_t bytes = tm_printable_character(text + i, length - i);
    const size_t piece_length = escape_one(text + i, bytes, piece);
    if (used + piece_length >= capacity) break;
    memcpy(out + used, piece, piece_length);
    used += piece_length;
    i += bytes == 0 ? 1 : bytes;
  }
  out[used] = '\0';
  return used;
}

size_t tm_printable_escape(const char *text, size_t length, char *out, size_t capacity) {
  return escape(text, length, false, out, capacity);
}

size_t tm_printable_clean(const char *text, size_t length, char *out, size_t capacity) {
  return escape(text, length, true, out, capacity);
}

/* Almost all text is of ASCII to its end: a cell each byte. */
static size_t ascii_bytes(const char *text, size_t length) {
  size_t i = 0;
  while (i < length && (uint8_t)text[i] < 0x80) i++;
  return i;
}

size_t tm_printable_width(const char *text, size_t length) {
  const size_t start = ascii_bytes(text, length);
  size_t       width = start;
  for (size_t i = start; i < length;) {
    const size_t bytes = tm_printable_character(text + i, length - i);
    width += cells(text + i, bytes);
    i += bytes == 0 ? 1 : bytes;
  }
  return width;
}

/* Bytes of the longest head that fits into `width` cells. */
static size_t head_bytes(const char *text, size_t length, size_t width) {
  size_t i = 0;
  while (i < length) {
    const size_t bytes = tm_printable_character(text + i, length - i), step = cells(text + i, bytes);
    if (step > width) break;
    width -= step;
    i += bytes == 0 ? 1 : bytes;
  }
  return i;
}

void tm_printable_shorten(char *text, size_t width) {
  const size_t length = strlen(text), full = tm_printable_width(text, length);
  if (full <= width) return;
  const size_t dots = width < 4 ? 0 : 3;
  /* The tail is a little longer than the head: names of tensors differ at their end. */
  const size_t head = head_bytes(text, length, dots == 0 ? width : (width - dots) / 2);
  if (dots == 0) {
    text[head] = '\0';
    return;
  }
  const size_t tail_width = width - dots - tm_printable_width(text, head);
  size_t       tail = head_bytes(text, length, full - tail_width);
  /* A wide character across the cut belongs to neither side. */
  while (tail < length && tm_printable_width(text + tail, length - tail) > tail_width)
    tail +=
        tm_printable_character(text + tail, length - tail) > 0 ? tm_printable_character(text + tail, length - tail) : 1;
  memmove(text + head + 3, text + tail, length - tail + 1);
  memcpy(text + head, "...", 3);
}

/* The next character as tm_printable_clean writes it, in out[12]; returns the bytes that it has in `text`. */
static size_t clean_one(const char *text, size_t length, char *out, size_t *out_length) {
  const uint8_t c = (uint8_t)text[0];
  if (c >= 0x20 && c < 0x7f) {
    out[0] = text[0];
    *out_length = 1;
    return 1;
  }
  const size_t bytes = tm_printable_character(text, length);
  *out_length = escape_one(text, bytes, out);
  return bytes == 0 ? 1 : bytes;
}

/* stream NULL: only measures. */
static size_t print_clean(tm_output_stream *stream, const char *text, size_t length) {
  size_t width = 0;
  for (size_t i = 0; i < length;) {
    char   piece[12];
    size_t piece_length = 0;
    i += clean_one(text + i, length - i, piece, &piece_length);
    width += tm_printable_width(piece, piece_length);
    if (stream != NULL) tm_output_bytes(stream, piece, piece_length);
  }
  return width;
}

size_t tm_printable_print(tm_output_stream *stream, const char *text) { return print_clean(stream, text, strlen(text)); }

/* Words from `column` on, before the first of which none is on the line if that is `start`.  Returns the column behind the last. */
static size_t wrap_words(tm_output_stream *stream, const char *text, size_t column, size_t start, size_t indent, size_t width) {
  while (*text != '\0') {
    const size_t word = strcspn(text, " \n");
    const size_t word_width = print_clean(NULL, text, word);
    if (column > start && width != 0 && column + 1 + word_width > width) {
      tm_output_char(stream, '\n');
      tm_output_repeat(stream, ' ', indent);
      column = start = indent;
    }
    if (column > start) {
      tm_output_char(stream, ' ');
      column++;
    }
    print_clean(stream, text, word);
    column += word_width;
    text += word;
    while (*text == ' ' || *text == '\n') text++;
  }
  return column;
}

void tm_printable_wrap(tm_output_stream *stream, const char *text, size_t indent, size_t width) {
  (void)wrap_words(stream, text, indent, indent, indent, width);
  tm_output_char(stream, '\n');
}

/* A head that would leave less than half of the line to what follows is broken as that is. */
void tm_printable_sentence(tm_output_stream *stream, const char *head, const char *text, size_t width) {
  if (width == 0 || print_clean(NULL, head, strlen(head)) <= width / 2) {
    tm_printable_wrap(stream, text, tm_printable_print(stream, head), width);
    return;
  }
  const size_t column = wrap_words(stream, head, 0, 0, SENTENCE_INDENT, width);
  (void)wrap_words(stream, text, column, 0, SENTENCE_INDENT, width);
  tm_output_char(stream, '\n');
}

void tm_printable_about(tm_output_stream *stream, const char *name, const char *text, size_t width) {
  char head[512];
  snprintf(head, sizeof head, "%s: ", name);
  tm_printable_sentence(stream, head, text, width);
}

void tm_printable_end_at_word(char *text, size_t most) {
  static const char ellipsis[] = "...";
  if (strlen(text) <= most) return;
  size_t end = most < sizeof ellipsis ? 0 : most - (sizeof ellipsis - 1);
  while (end != 0 && text[end] != ' ') end--;
  while (end != 0 && (text[end - 1] == ' ' || text[end - 1] == ',' || text[end - 1] == ';')) end--;
  if (end != 0) memcpy(text + end, ellipsis, sizeof ellipsis);
  else text[0] = '\0';
}

bool tm_printable_is_hidden(const char *text, size_t bytes, uint32_t *out_code) {
  *out_code = decode(text, bytes);
  return IN(*out_code, hidden);
}
