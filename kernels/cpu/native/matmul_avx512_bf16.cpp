// bf16 by bf16 with dpbf16: each step adds two products to each of 32 columns.
#include "matmul_kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define SGC_LANES 16
#include "matmul_blocks.h"

namespace sgc {
namespace {

SGC_INLINE __m512bh weights_at(const char* at) {
  return bits_as<__m512bh>(_mm512_loadu_si512(at));
}

SGC_INLINE __m512bh all_pairs(uint32_t pair) {
  return bits_as<__m512bh>(_mm512_set1_epi32(static_cast<int>(pair)));
}

struct Dots {
  using X = bf16;
  static constexpr int kRows = 12;      // 24 sums, of 32 registers
  static constexpr int64_t kStep = 128;

  template <int rows>
  static void sums(const bf16* x, int64_t stride, int64_t n_in, const char* panel, Ahead ahead,
                   float* out) {
    __m512 a[rows], b[rows];
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) a[r] = b[r] = _mm512_setzero_ps();
    const auto add = [&](auto&& pair_of) {
      const __m512bh w0 = weights_at(panel), w1 = weights_at(panel + 64);
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const __m512bh pair = all_pairs(pair_of(x + r * stride));
        a[r] = _mm512_dpbf16_ps(a[r], w0, pair);
        b[r] = _mm512_dpbf16_ps(b[r], w1, pair);
      }
    };
    int64_t i = 0;
    for (; i + 1 < n_in; i += 2, panel += kStep, ahead.at += ahead.step) {
      _mm_prefetch(ahead.at, _MM_HINT_T0);
      _mm_prefetch(ahead.at + 64, _MM_HINT_T0);
      add([i](const bf16* row) {
        uint32_t pair;
        std::memcpy(&pair, row + i, 4);
        return pair;
      });
    }
    if (i < n_in) add([i](const bf16* row) { return uint32_t{row[i].bits}; });  // and a zero
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      _mm512_store_ps(out + r * kColumns, a[r]);
      _mm512_store_ps(out + r * kColumns + kLanes, b[r]);
    }
  }
};

}  // namespace

const Kernel* avx512_bf16_kernel() {
  static constexpr Kernel kernel{kColumns, Dots::kRows, Layout::pairs, Format::bf16,
                                 multiply_blocks<Dots>};
  return &kernel;
}

}  // namespace sgc

#else

namespace sgc {
const Kernel* avx512_bf16_kernel() { return nullptr; }
}  // namespace sgc

#endif
