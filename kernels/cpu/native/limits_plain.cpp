#define SGC_SPIN spin_plain
#define SGC_WIDTH 4
#include "limits_spin.inc"

#include "machine_limits.h"

namespace sgc {

float read_all(const void* memory, int64_t n_bytes) {
  typedef float Line __attribute__((vector_size(64)));
  const auto* lines = static_cast<const Line*>(memory);
  Line sums[4] = {};
  for (int64_t i = 0; i + 4 <= n_bytes / 64; i += 4)
    for (int64_t k = 0; k < 4; ++k) {
      __builtin_prefetch(lines + i + k + 64);
      sums[k] += lines[i + k];
    }
  return sums[0][0] + sums[1][1] + sums[2][2] + sums[3][3];
}

}  // namespace sgc
