#define _GNU_SOURCE
#include "cstore.h"

#include <pthread.h>
#include <string.h>

static const uint64_t polynomials[3] = {0xEDB88320, 0x82F63B78, 0x9A6C9329AC4BC9B5};
static uint64_t tables[3][8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void) {
  for (int kind = 0; kind < 3; kind++) {
    for (int byte = 0; byte < 256; byte++) {
      uint64_t crc = (uint64_t)byte;
      for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ polynomials[kind] : crc >> 1;
      tables[kind][0][byte] = crc;
    }
    for (int row = 1; row < 8; row++)
      for (int byte = 0; byte < 256; byte++) {
        uint64_t before = tables[kind][row - 1][byte];
        tables[kind][row][byte] = (before >> 8) ^ tables[kind][0][before & 0xff];
      }
  }
}

static uint64_t mask(int kind) { return kind == 2 ? ~(uint64_t)0 : 0xffffffff; }

uint64_t rh_crc(int kind, uint64_t crc, const void *data, size_t size) {
  pthread_once(&once, fill);
  uint64_t(*t)[256] = tables[kind];
  const unsigned char *p = data;
  crc ^= mask(kind);
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t word;
    memcpy(&word, p, 8);  // little-endian machines only, as everything here
    crc ^= word;
    crc = t[7][crc & 0xff] ^ t[6][crc >> 8 & 0xff] ^ t[5][crc >> 16 & 0xff] ^ t[4][crc >> 24 & 0xff] ^
          t[3][crc >> 32 & 0xff] ^ t[2][crc >> 40 & 0xff] ^ t[1][crc >> 48 & 0xff] ^ t[0][crc >> 56];
  }
  for (; size > 0; size--, p++) crc = (crc >> 8) ^ t[0][(crc ^ *p) & 0xff];
  return crc ^ mask(kind);
}

static uint64_t times(const uint64_t *matrix, uint64_t vector) {
  uint64_t sum = 0;
  for (; vector; vector >>= 1, matrix++)
    if (vector & 1) sum ^= *matrix;
  return sum;
}

// Appending zero bits is linear in the bits of a CRC, so the matrix for one bit, squared again and again, appends any
// number of them.
uint64_t rh_crc_combine(int kind, uint64_t first, uint64_t second, uint64_t size) {
  uint64_t matrix[64], square[64];
  int width = kind == 2 ? 64 : 32;
  matrix[0] = polynomials[kind];
  for (int row = 1; row < width; row++) matrix[row] = (uint64_t)1 << (row - 1);
  for (int doubling = 0; doubling < 3; doubling++) {
    for (int row = 0; row < width; row++) square[row] = times(matrix, matrix[row]);
    memcpy(matrix, square, sizeof matrix);
  }
  for (; size; size >>= 1) {
    if (size & 1) first = times(matrix, first);
    for (int row = 0; row < width; row++) square[row] = times(matrix, matrix[row]);
    memcpy(matrix, square, sizeof matrix);
  }
  return first ^ second;
}

ptrdiff_t rh_find(const void *data, size_t size, const char *text) {
  const char *found = memmem(data, size, text, strlen(text));
  return found ? found - (const char *)data : -1;
}
