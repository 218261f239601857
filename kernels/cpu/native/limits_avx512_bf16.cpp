#include <cstdint>
#include <immintrin.h>

namespace sgc {

int64_t spin_avx512_bf16(int64_t n_rounds, float* sink) {
  constexpr int kSums = 12;
  __m512 sums[kSums];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  const auto a = (__m512bh)_mm512_set1_epi16(0x3c00), b = (__m512bh)_mm512_set1_epi16(0x3c01);
  for (int64_t round = 0; round < n_rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], a, b);
    asm volatile("" : "+m"(*sink) : : "memory");
  }
  for (int i = 0; i < kSums; ++i) *sink += _mm512_reduce_add_ps(sums[i]);
  return n_rounds * kSums * 32;
}

}  // namespace sgc
