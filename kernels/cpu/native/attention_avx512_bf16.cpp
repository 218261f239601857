// Attention in bf16 by AVX512-BF16: a dword is a pair, a dot multiplies pairs and adds in fp32.
#if defined(__x86_64__)
#include "attention_kernel.h"

namespace sgc {
namespace {

struct Bf16Dots {
  using Lanes = sgc::Lanes<16>;
  using Element = bf16;
  static constexpr int per_dword = 2;
  static constexpr bool has_few = true;

  static Lanes::F dot(Lanes::F sum, Lanes::F a, Lanes::F b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }

  static void pack_query(const bf16* from, int64_t n, float* to) {
    std::memcpy(to, from, 2 * static_cast<size_t>(n));
  }

  static void widen_numbers(const int8_t* from, int64_t n, float scale, bf16* to) {
    const auto scales = _mm512_set1_ps(scale);
    const auto scaled = [&](__m128i numbers) {
      return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(numbers)), scales);
    };
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
      const auto* at = reinterpret_cast<const __m128i*>(from + i);
      const auto low = scaled(_mm_loadu_si128(at)), high = scaled(_mm_loadu_si128(at + 1));
      _mm512_storeu_si512(to + i, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
    for (; i + 16 <= n; i += 16) {  // stores under a mask take several times as long
      const auto numbers = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                          (__m256i)_mm512_cvtneps_pbh(scaled(numbers)));
    }
    if (i < n) {
      const auto mask = static_cast<__mmask16>((1u << (n - i)) - 1);
      const auto some = _mm512_cvtneps_pbh(scaled(_mm_maskz_loadu_epi8(mask, from + i)));
      _mm256_mask_storeu_epi16(to + i, mask, (__m256i)some);
    }
  }

  static void pack_keys(const char* const* rows, int n_keys, int64_t n, float* to,
                        Fetcher& fetcher) {
    transpose<Lanes>(rows, n_keys, n / 2, to, fetcher);
  }

  // Interleaves two rows: dword i is number i of the first and of the second.
  struct Zip {
    __m512i low, high;
    Zip() {
      alignas(64) static constexpr uint16_t order[64] = {
          0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
          11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53,
          22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};
      low = _mm512_load_si512(order);
      high = _mm512_load_si512(order + 32);
    }
  };

  // to[pair of keys][padded(n)]
  static void pack_values(const char* const* rows, int n_keys, int64_t n, float* to,
                          Fetcher& fetcher) {
    const int64_t width = padded(n);
    const Zip zip;
    for (int key = 0; key < n_keys; key += 2, to += width) {
      for (int64_t at = 0; at < n; at += 32) {
        const int64_t left = n - at < 32 ? n - at : 32;
        fetcher.step();
        const auto mask = static_cast<__mmask32>((uint64_t{1} << left) - 1);
        const auto second_mask = key + 1 < n_keys ? mask : __mmask32{0};
        const auto one = _mm512_maskz_loadu_epi16(mask, rows[key] + 2 * at);
        const auto other = _mm512_maskz_loadu_epi16(second_mask, rows[key + 1] + 2 * at);
        _mm512_storeu_si512(to + at, _mm512_permutex2var_epi16(one, zip.low, other));
        if (left > 16)
          _mm512_storeu_si512(to + at + 16, _mm512_permutex2var_epi16(one, zip.high, other));
      }
    }
  }

  // The same row of a packed tile in registers: N vectors, the last with the numbers of `last`.
  template <int N>
  static void value_row(const char* const* rows, int n_keys, int64_t offset, __mmask16 last,
                        __m512* row) {
    const Zip zip;
#pragma GCC unroll 2
    for (int n = 0; n < N; n += 2) {
      const auto half = n + 2 == N ? last : n + 1 == N ? __mmask16{0} : __mmask16{0xffff};
      const auto mask = static_cast<__mmask32>(n + 1 == N ? last : uint32_t{half} << 16 | 0xffff);
      const int64_t at = offset + 32 * n;
      const auto one = _mm512_maskz_loadu_epi16(mask, rows[0] + at);
      const auto other = n_keys > 1 ? _mm512_maskz_loadu_epi16(mask, rows[1] + at) : __m512i{};
      row[n] = (__m512)_mm512_permutex2var_epi16(one, zip.low, other);
      if (n + 1 < N) row[n + 1] = (__m512)_mm512_permutex2var_epi16(one, zip.high, other);
    }
  }

  static void only_keys(const float* tile, int from, int end, int64_t width, float* to) {
    for (int key = 0; key < kTileKeys; ++key)
      for (int64_t i = 0; i < width; ++i) {
        const int64_t at = (key / 2 * width + i) * 2 + key % 2;
        uint16_t bits = 0;
        if (key >= from && key < end)
          std::memcpy(&bits, reinterpret_cast<const char*>(tile) + 2 * at, 2);
        std::memcpy(reinterpret_cast<char*>(to) + 2 * at, &bits, 2);
      }
  }

  static bool is_finite(const float* tile, int64_t n) {
    const auto exponent = _mm512_set1_epi16(0x7f80);
    __mmask32 is_not = 0;
    for (int64_t i = 0; i < n; i += 16) {
      const auto bits = _mm512_and_si512(_mm512_loadu_si512(tile + i), exponent);
      is_not |= _mm512_cmpeq_epi16_mask(bits, exponent);
    }
    return is_not == 0;
  }

  static void pack_weights(const Lanes::F* weights, float* to) {
    for (int i = 0; i < 4; i += 2) {
      const auto pairs = _mm512_cvtne2ps_pbh(weights[i + 1], weights[i]);
      _mm512_storeu_si512(to + 8 * i, (__m512i)pairs);
    }
  }
};

}  // namespace

extern constexpr AttentionKernel kAttentionBf16Dots = kernel_of<Bf16Dots>();

}  // namespace sgc
#endif
