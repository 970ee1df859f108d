#pragma once
#include <stddef.h>
#include <stdint.h>

// The CRCs of S3 and tus, for the store of the tests: an implementation apart from the product's. Kinds: 0 CRC-32,
// 1 CRC-32C, 2 CRC-64/NVME.

// The CRC of what `crc` is of, followed by `size` bytes. Begin with 0.
uint64_t rh_crc(int kind, uint64_t crc, const void *data, size_t size);

// The CRC of what `first` is of, followed by the `size` bytes that `second` is of.
uint64_t rh_crc_combine(int kind, uint64_t first, uint64_t second, uint64_t size);

// Where `text` begins in the `size` bytes of `data`; -1 if it is not there.
ptrdiff_t rh_find(const void *data, size_t size, const char *text);
