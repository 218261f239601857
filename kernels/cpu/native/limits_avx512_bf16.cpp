#if defined(__x86_64__)
#include <cstdint>
#include <immintrin.h>

namespace sgc {

int64_t spin_avx512_bf16(int64_t n_rounds, float* sink) {
  const auto a = (__m512bh)_mm512_set1_epi16(0x3c00), b = (__m512bh)_mm512_set1_epi16(0x3c01);
  const auto at = [](float start) { return _mm512_set1_ps(start); };
  // Each begins elsewhere: sums that are always equal would be made once.
  __m512 s0 = at(0), s1 = at(1), s2 = at(2), s3 = at(3), s4 = at(4), s5 = at(5);
  __m512 s6 = at(6), s7 = at(7), s8 = at(8), s9 = at(9), s10 = at(10), s11 = at(11);
  const auto add = [&](__m512& sum) { sum = _mm512_dpbf16_ps(sum, a, b); };
  for (int64_t round = 0; round < n_rounds; ++round) {
    add(s0), add(s1), add(s2), add(s3), add(s4), add(s5);
    add(s6), add(s7), add(s8), add(s9), add(s10), add(s11);
  }
  *sink += _mm512_reduce_add_ps(s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9 + s10 + s11);
  return n_rounds * 12 * 32;
}

}  // namespace sgc
#endif
