// What this machine can do at most: arithmetic from registers, and reading memory. Benches and
// `sgc doctor` hold kernels against it.
#pragma once

#include <cstdint>

#include "threads.h"

namespace sgc {

// Multiply-adds in a loop that touches no memory. Returns how many it made; `sink` is written so
// that it is not optimised away.
using Spin = int64_t (*)(int64_t n_rounds, float* sink);

Spin bf16_spin();  // for `best()`; where the machine has no bf16 products, fp32_spin()
Spin fp32_spin();

// Sums a region of memory, 64 bytes at a time.
float read_all(const void* memory, int64_t n_bytes);

}  // namespace sgc
