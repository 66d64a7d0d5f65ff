/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <stddef.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------- UTF-8 ---- */

/* Well-formed sequences (Unicode, table 3-7): lead bytes, bytes, and the range of the second byte, which alone keeps out
   overlong forms, surrogates and values above U+10FFFF. */
typedef struct utf8_row {
  unsigned char lead_first, lead_last, bytes, second_first, second_last;
} utf8_row;

static const utf8_row utf8_rows[] = {
  { 0x00, 0x7f, 1, 0x00, 0x00 }, { 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf },
  { 0xe1, 0xec, 3, 0x80, 0xbf }, { 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf },
  { 0xf0, 0xf0, 4, 0x90, 0xbf }, { 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
};

static const utf8_row *find_utf8_row(unsigned char lead) {
  for (size_t i = 0; i < sizeof utf8_rows / sizeof utf8_rows[0]; i++)
    if (lead >= utf8_rows[i].lead_first && lead <= utf8_rows[i].lead_last) return &utf8_rows[i];
  return NULL;
}

uint32_t tm_utf8_length(const char *text, uint64_t available) {
  if (available == 0) return 0;
  const unsigned char *bytes = (const unsigned char *)text;
  const utf8_row *row = find_utf8_row(bytes[0]);
  if (row == NULL || row->bytes > available) return 0;
  if (row->bytes > 1 && (bytes[1] < row->second_first || bytes[1] > row->second_last)) return 0;
  for (uint32_t i = 2; i < row->bytes; i++)
    if ((bytes[i] & 0xc0) != 0x80) return 0;
  return row->bytes;
}

/* ---------------------------------------------------------------------------------------------------- escaping ---- */

#define LONGEST_PIECE 4         /* \xNN, or four bytes of UTF-8 */
static const char ellipsis[] = "...";

static uint32_t put_pair(char *piece, char letter) {
  piece[0] = '\\';
  piece[1] = letter;
  return 2;
}

/* C1 controls steer terminals as the others do; soft hyphen, zero-width and direction marks, line and paragraph separators,
   the byte order mark and tags show nothing but change what is shown. */
static bool is_hidden(const char *text, uint32_t length) {
  static const struct { uint32_t first, last; } ranges[] = {
    { 0x80, 0x9f },     { 0xad, 0xad },     { 0x61c, 0x61c },   { 0x180e, 0x180e }, { 0x200b, 0x200f },
    { 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe007f },
  };
  static const unsigned char masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
  uint32_t code = (unsigned char)text[0] & masks[length];
  for (uint32_t i = 1; i < length; i++) code = code << 6 | ((unsigned char)text[i] & 0x3f);
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
    if (code >= ranges[i].first && code <= ranges[i].last) return true;
  return false;
}

/* Writes what stands for the first character of `text` and returns its length; *out_taken bytes of text are used up. */
static uint32_t escape_one(const char *text, uint64_t available, char *piece, uint32_t *out_taken) {
  static const char digits[] = "0123456789abcdef";
  const unsigned char byte = (unsigned char)text[0];
  const uint32_t length = tm_utf8_length(text, available);
  *out_taken = 1;
  if (byte == '\n') return put_pair(piece, 'n');
  if (byte == '\t') return put_pair(piece, 't');
  if (byte == '\r') return put_pair(piece, 'r');
  if (byte == '\\') return put_pair(piece, '\\');
  if (length == 0 || byte < 0x20 || byte == 0x7f || is_hidden(text, length)) {
    put_pair(piece, 'x');
    piece[2] = digits[byte >> 4];
    piece[3] = digits[byte & 15];
    return 4;
  }
  memcpy(piece, text, length);
  *out_taken = length;
  return length;
}

bool tm_text_has_ending(const char *text, const char *ending) {
  const size_t length = strlen(text), tail = strlen(ending);
  return length > tail && text[length - tail - 1] != '/' && strcmp(text + length - tail, ending) == 0;
}

bool tm_text_is_clean(const char *text, uint64_t length) {
  for (uint64_t i = 0; i < length;) {
    const unsigned char byte = (unsigned char)text[i];
    const uint32_t taken = tm_utf8_length(text + i, length - i);
    if (taken == 0 || byte < 0x20 || byte == 0x7f || is_hidden(text + i, taken)) return false;
    i += taken;
  }
  return true;
}

uint64_t tm_text_escape(const char *text, uint64_t length, char *out_text, uint64_t capacity) {
  const uint64_t room = capacity - sizeof ellipsis;   /* up to here a piece still leaves space for the ellipsis */
  uint64_t used = 0, cut = 0;
  for (uint64_t i = 0; i < length;) {
    char piece[LONGEST_PIECE];
    uint32_t taken;
    const uint32_t bytes = escape_one(text + i, length - i, piece, &taken);
    if (used + bytes >= capacity) {
      memcpy(out_text + cut, ellipsis, sizeof ellipsis);
      return cut + sizeof ellipsis - 1;
    }
    memcpy(out_text + used, piece, bytes);
    used += bytes;
    i += taken;
    if (used <= room) cut = used;
  }
  out_text[used] = '\0';
  return used;
}

/* ---------------------------------------------------------------------------------------------------- patterns ---- */

typedef struct span {
  const char *text;
  uint64_t    length;
} span;

/* Index of the ] that ends the class beginning at `at` (a [), or 0. */
static uint64_t find_class_end(span pattern, uint64_t at) {
  uint64_t i = at + 1;
  if (i < pattern.length && (pattern.text[i] == '!' || pattern.text[i] == '^')) i++;
  for (uint64_t first = i; i < pattern.length; i++)
    if (pattern.text[i] == ']' && i > first) return i;
  return 0;
}

static bool class_matches(const char *members, uint64_t length, char byte) {
  const bool inverted = length > 0 && (members[0] == '!' || members[0] == '^');
  bool found = false;
  for (uint64_t i = inverted ? 1 : 0; i < length; i++) {
    const bool is_range = i + 2 < length && members[i + 1] == '-';
    const unsigned char low = (unsigned char)members[i], high = (unsigned char)members[is_range ? i + 2 : i];
    if ((unsigned char)byte >= low && (unsigned char)byte <= high) found = true;
    if (is_range) i += 2;
  }
  return found != inverted;
}

/* Does the one-byte item of the pattern at `at` match `byte`?  *out_next is the index after the item. */
static bool item_matches(span pattern, uint64_t at, char byte, uint64_t *out_next) {
  const char item = pattern.text[at];
  *out_next = at + 1;
  if (item == '?') return true;
  if (item == '\\' && at + 1 < pattern.length) {
    *out_next = at + 2;
    return pattern.text[at + 1] == byte;
  }
  const uint64_t end = item == '[' ? find_class_end(pattern, at) : 0;
  if (end == 0) return item == byte;
  *out_next = end + 1;
  return class_matches(pattern.text + at + 1, end - at - 1, byte);
}

/* Only the last * ever needs to be tried again, so the time is at most pattern x text. */
bool tm_glob_match(const char *pattern_text, uint64_t pattern_length, const char *text, uint64_t length) {
  const span pattern = { pattern_text, pattern_length };
  uint64_t p = 0, t = 0, star = UINT64_MAX, star_text = 0;
  while (t < length) {
    uint64_t next;
    if (p < pattern.length && pattern.text[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.length && item_matches(pattern, p, text[t], &next)) {
      p = next;
      t++;
    } else if (star != UINT64_MAX) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.length && pattern.text[p] == '*') p++;
  return p == pattern.length;
}

/* ------------------------------------------------------------------------------------------------- suggestions ---- */

#define LONGEST_NAME 64         /* longer names are compared by their first bytes */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static uint32_t least_of(uint32_t a, uint32_t b, uint32_t c) {
  const uint32_t ab = a < b ? a : b;
  return ab < c ? ab : c;
}

/* Levenshtein distance, one row of the table at a time; a '*' in a stands for anything, a '?' for one character. */
static uint32_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
  uint32_t row[LONGEST_NAME + 1];
  for (uint32_t j = 0; j <= b_length; j++) row[j] = j;
  for (uint32_t i = 1; i <= a_length; i++) {
    uint32_t diagonal = row[0];
    if (a[i - 1] == '*') {
      for (uint32_t j = 1; j <= b_length; j++) row[j] = row[j - 1] < row[j] ? row[j - 1] : row[j];
      continue;
    }
    row[0]++;
    for (uint32_t j = 1; j <= b_length; j++) {
      const uint32_t substituted = diagonal + (a[i - 1] != '?' && lower(a[i - 1]) != lower(b[j - 1]));
      diagonal = row[j];
      row[j] = least_of(row[j] + 1, row[j - 1] + 1, substituted);
    }
  }
  return row[b_length];
}

static size_t bounded_length(const char *name) {
  const size_t length = strlen(name);
  return length < LONGEST_NAME ? length : LONGEST_NAME;
}

const char *tm_suggest(const char *name, const char *const *candidates, uint64_t count) {
  const size_t length = bounded_length(name);
  size_t letters = length;
  const char *best = NULL;
  for (size_t i = 0; i < length; i++) letters -= name[i] == '*' || name[i] == '?';
  uint32_t best_distance = letters < 4 ? 2 : (uint32_t)letters / 3 + 2;   /* a slip changes about a third at most */
  for (uint64_t i = 0; i < count; i++) {
    const uint32_t distance = edit_distance(name, length, candidates[i], bounded_length(candidates[i]));
    if (distance >= best_distance || distance >= letters) continue;
    best = candidates[i];
    best_distance = distance;
  }
  return best;
}
