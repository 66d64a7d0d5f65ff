/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/stranger.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/text.h"

/* ------------------------------------------------------------------------------------------------- known kinds ---- */

typedef struct magic_row {
  uint32_t    offset;
  uint32_t    length;
  const char *magic;
  const char *text;             /* "<file>: is <text>" */
} magic_row;

#define MAGIC(offset, literal, text) { offset, sizeof literal - 1, literal, text }

#define ZIP_TEXT "a zip archive, such as PyTorch (.pt, .bin, .ckpt) and NumPy (.npz) write; convert it to safetensors first, or " \
                 "unpack it if it is an .npz: each array in it is an .npy file"
#define PICKLE_TEXT "a Python pickle, such as old PyTorch checkpoints; it is not read, because reading a pickle runs code " \
                    "from it; convert it to safetensors first"
#define OLD_TEXT "a model in a format older than GGUF; convert it to GGUF first"

static const magic_row magics[] = {
  MAGIC(0, "version https://git-lfs", "a Git LFS pointer, a small text that stands for the file; fetch the file itself "
                                      "with: git lfs pull"),
  MAGIC(0, "PK\3\4", ZIP_TEXT),
  MAGIC(0, "PK\5\6", "an empty zip archive"),
  MAGIC(0, "\x80\2", PICKLE_TEXT),
  MAGIC(0, "\x80\3", PICKLE_TEXT),
  MAGIC(0, "\x80\4", PICKLE_TEXT),
  MAGIC(0, "\x80\5", PICKLE_TEXT),
  MAGIC(0, "\x1f\x8b", "compressed with gzip; unpack it first"),
  MAGIC(0, "\x28\xb5\x2f\xfd", "compressed with zstd; unpack it first"),
  MAGIC(0, "\xfd" "7zXZ", "compressed with xz; unpack it first"),
  MAGIC(0, "BZh", "compressed with bzip2; unpack it first"),
  MAGIC(0, "7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it first"),
  MAGIC(257, "ustar", "a tar archive; unpack it first"),
  MAGIC(0, "\x89HDF\r\n\x1a\n", "an HDF5 file, such as Keras (.h5) writes; convert it to safetensors first"),
  MAGIC(4, "TFL3", "a TensorFlow Lite model; this version does not read it"),
  MAGIC(0, "lmgg", OLD_TEXT),
  MAGIC(0, "fmgg", OLD_TEXT),
  MAGIC(0, "tjgg", OLD_TEXT),
  MAGIC(0, "algg", "a ggla adapter, older than GGUF; convert it to GGUF first"),
  MAGIC(0, "%PDF-", "a PDF document"),
  MAGIC(0, "\x7f" "ELF", "a program or library"),
};

static const magic_row *find_magic(const tm_head *head) {
  for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++) {
    const magic_row *row = &magics[i];
    if (row->offset + row->length > head->count) continue;
    if (memcmp(head->bytes + row->offset, row->magic, row->length) == 0) return row;
  }
  return NULL;
}

/* ------------------------------------------------------------------------------------------------ kinds of text ---- */

static uint32_t first_visible(const tm_head *head) {
  uint32_t i = head->count >= 3 && memcmp(head->bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;   /* a byte order mark */
  while (i < head->count && strchr(" \t\r\n", head->bytes[i]) != NULL && head->bytes[i] != 0) i++;
  return i;
}

static char lower(unsigned char c) { return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); }

static bool begins_with(const tm_head *head, const char *word) {
  const uint32_t first = first_visible(head);
  const size_t length = strlen(word);
  if (head->count - first < length) return false;
  for (size_t i = 0; i < length; i++)
    if (lower(head->bytes[first + i]) != word[i]) return false;
  return true;
}

static bool is_web_page(const tm_head *head) {
  return begins_with(head, "<!doctype") || begins_with(head, "<html") || begins_with(head, "<head") ||
         begins_with(head, "<?xml");
}

/* All of the head is text; the last character may be cut.  A few bytes prove nothing. */
static bool is_text(const tm_head *head) {
  if (head->count < 9) return false;
  for (uint32_t i = 0; i < head->count;) {
    const unsigned char byte = head->bytes[i];
    const uint32_t length = tm_utf8_length((const char *)head->bytes + i, head->count - i);
    if (length == 0 && head->count - i >= 4) return false;
    if (length == 1 && (byte < 0x20 || byte == 0x7f) && strchr("\t\n\r\f", byte) == NULL) return false;
    if (byte == 0) return false;
    i += length == 0 ? 1 : length;
  }
  return true;
}

bool tm_stranger_is_known(const tm_head *head) {
  return head->file_bytes == 0 || find_magic(head) != NULL || is_web_page(head) || is_text(head);
}

bool tm_stranger_is_json_object(const tm_head *head) { return begins_with(head, "{"); }

/* ----------------------------------------------------------------------------------------------------- message ---- */

static tm_status refuse_text(const tm_head *head, const char *label, tm_error *error) {
  char begin[64];
  (void)tm_text_escape((const char *)head->bytes, tm_min_u64(head->count, 60), begin, sizeof begin);
  if (begins_with(head, "{") || begins_with(head, "["))
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: is JSON, but not the index of a safetensors set (no \"weight_map\")", label);
  return tm_fail(error, TM_ERROR_CORRUPT, "%s: is not a model file, but text that begins with \"%s\"", label, begin);
}

static tm_status refuse_binary(const tm_head *head, const char *label, tm_error *error) {
  char begin[3 * 16 + 1] = "";
  for (uint32_t i = 0; i < head->count && i < 16; i++) (void)snprintf(begin + 3 * i, 4, " %02x", head->bytes[i]);
  return tm_fail(error, TM_ERROR_CORRUPT, "%s: is not in a format that this version reads (safetensors, GGUF, ONNX, npy); its %" PRIu64
                 " byte%s with%s", label, head->file_bytes, head->file_bytes == 1 ? " begins" : "s begin", begin);
}

tm_status tm_stranger_refuse(const tm_head *head, const char *label, tm_error *error) {
  const magic_row *row = find_magic(head);
  if (head->file_bytes == 0)
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: is empty (0 bytes); was a download interrupted?", label);
  if (row != NULL) return tm_fail(error, TM_ERROR_CORRUPT, "%s: is not a model file, but %s", label, row->text);
  if (is_web_page(head))
    return tm_fail(error, TM_ERROR_CORRUPT, "%s: is not a model file, but a web page (HTML or XML): a failed download, or "
                   "one that needs a login?", label);
  return is_text(head) ? refuse_text(head, label, error) : refuse_binary(head, label, error);
}
