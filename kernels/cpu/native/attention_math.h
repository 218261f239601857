// How keys and values of a pool become what the kernels multiply: tiles of dwords. In fp32 a dword
// is a number; with dots of bf16 pairs (attention_avx512_bf16.cpp) it is two neighbours of a row.
// A math has: Lanes, `Element` of q and the pools, how many numbers a dword has, and how to pack.
#pragma once

#include "attention_fetch.h"
#include "attention_item.h"
#include "attention_lanes.h"

namespace sgc {
namespace {

inline float widened(float x) { return x; }
inline float widened(bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}
inline void narrow(float x, float* to) { *to = x; }
inline void narrow(float x, bf16* to) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  to->bits = static_cast<uint16_t>(is_nan ? (bits >> 16) | 0x40 : rounded);
}

// The lanes a to d of two vectors, those of the second from 4 on.
template <int a, int b, int c, int d>
inline Lanes<4>::F picked(Lanes<4>::F x, Lanes<4>::F y) {
#if defined(__clang__)
  return __builtin_shufflevector(x, y, a, b, c, d);
#else
  return __builtin_shuffle(x, y, Lanes<4>::I{a, b, c, d});
#endif
}

// to[i][key] = dword i of row `key`, for four keys.
inline void transpose_four(const char* const* rows, int64_t n, float* to) {
  using L = Lanes<4>;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    L::F x[4];
    for (int key = 0; key < 4; ++key) std::memcpy(&x[key], rows[key] + 4 * i, 16);
    const auto ab_low = picked<0, 4, 1, 5>(x[0], x[1]), ab_high = picked<2, 6, 3, 7>(x[0], x[1]);
    const auto cd_low = picked<0, 4, 1, 5>(x[2], x[3]), cd_high = picked<2, 6, 3, 7>(x[2], x[3]);
    store<L>(to + (i + 0) * kTileKeys, picked<0, 1, 4, 5>(ab_low, cd_low));
    store<L>(to + (i + 1) * kTileKeys, picked<2, 3, 6, 7>(ab_low, cd_low));
    store<L>(to + (i + 2) * kTileKeys, picked<0, 1, 4, 5>(ab_high, cd_high));
    store<L>(to + (i + 3) * kTileKeys, picked<2, 3, 6, 7>(ab_high, cd_high));
  }
  for (; i < n; ++i)
    for (int key = 0; key < 4; ++key) std::memcpy(to + i * kTileKeys + key, rows[key] + 4 * i, 4);
}

#if defined(__AVX512F__)
// Sixteen rows of sixteen dwords become sixteen columns.
[[gnu::always_inline]] inline void transpose_registers(__m512i* x) {
  __m512i y[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
    x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
    x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
    x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // x[4 r + i]: of rows 4 r to 4 r + 3, dwords i, i + 4, i + 8, i + 12
    const auto even = _mm512_shuffle_i32x4(x[i], x[i + 4], 0x88);
    const auto odd = _mm512_shuffle_i32x4(x[i], x[i + 4], 0xdd);
    const auto even2 = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0x88);
    const auto odd2 = _mm512_shuffle_i32x4(x[i + 8], x[i + 12], 0xdd);
    y[i] = _mm512_shuffle_i32x4(even, even2, 0x88);
    y[i + 8] = _mm512_shuffle_i32x4(even, even2, 0xdd);
    y[i + 4] = _mm512_shuffle_i32x4(odd, odd2, 0x88);
    y[i + 12] = _mm512_shuffle_i32x4(odd, odd2, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) x[i] = y[i];
}

// The same as `transpose_four`, for sixteen keys.
inline void transpose_sixteen(const char* const* rows, int64_t n, float* to, Fetcher& fetcher) {
  for (int64_t at = 0; at < n; at += 16) {
    const int64_t left = n - at < 16 ? n - at : 16;
    const auto mask = static_cast<__mmask16>((1u << left) - 1);
    __m512i x[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      x[i] = _mm512_maskz_loadu_epi32(mask, rows[i] + 4 * at);
      if (i % 8 == 7) fetcher.step();
    }
    transpose_registers(x);
    float* out = to + at * kTileKeys;
    if (left == 16) {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(out + i * kTileKeys, x[i]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i)
        if (i < left) _mm512_storeu_si512(out + i * kTileKeys, x[i]);
    }
  }
}
#endif

// to[i][key] = dword i of row `key`, for `n_keys` keys, of which the caller lists the last again
// up to a multiple of sixteen.
template <class L>
inline void transpose(const char* const* rows, int n_keys, int64_t n_dwords, float* to,
                      Fetcher& fetcher) {
#if defined(__AVX512F__)
  if constexpr (L::width == 16) {
    for (int key = 0; key < n_keys; key += 16) transpose_sixteen(rows + key, n_dwords, to + key, fetcher);
    return;
  }
#endif
  for (int key = 0; key < n_keys; key += 4) {
    transpose_four(rows + key, n_dwords, to + key);
    fetcher.step();
  }
}

template <class L>
inline void widen_row(const float* from, int64_t n, float* to) {
  std::memcpy(to, from, 4 * static_cast<size_t>(n));
}
template <class L>
inline void widen_row(const bf16* from, int64_t n, float* to) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 16 <= n; i += 16) {
    const auto wide = _mm512_cvtepu16_epi32(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
    _mm512_storeu_si512(to + i, _mm512_slli_epi32(wide, 16));
  }
#elif defined(__AVX2__)
  for (; i + 8 <= n; i += 8) {
    const auto wide =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_slli_epi32(wide, 16));
  }
#endif
  for (; i < n; ++i) to[i] = widened(from[i]);
}

// Arithmetic in fp32, whatever the pool's format.
template <class L, class E>
struct Floats {
  using Lanes = L;
  using Element = E;
  static constexpr int per_dword = 1;
  static constexpr bool has_few = L::width == 16 && sizeof(E) == 4;

  static typename L::F dot(typename L::F sum, typename L::F a, typename L::F b) {
    return fma(a, b, sum);
  }

  static void pack_query(const E* from, int64_t n, float* to) { widen_row<L>(from, n, to); }

  // Numbers of a page of i8.
  static void widen_numbers(const int8_t* from, int64_t n, float scale, E* to) {
    for (int64_t i = 0; i < n; ++i) narrow(static_cast<float>(from[i]) * scale, to + i);
  }

  static void pack_keys(const char* const* rows, int n_keys, int64_t n, float* to,
                        Fetcher& fetcher) {
    if constexpr (sizeof(E) == 4) {
      transpose<L>(rows, n_keys, n, to, fetcher);
    } else if (n % 2) {
      for (int64_t i = 0; i < n; ++i)
        for (int key = 0; key < n_keys; ++key)
          to[i * kTileKeys + key] = widened(reinterpret_cast<const E*>(rows[key])[i]);
    } else {  // pairs first, into the later half, which is then taken apart from its start
      const float* pairs = to + n / 2 * kTileKeys;
      transpose<L>(rows, n_keys, n / 2, to + n / 2 * kTileKeys, fetcher);
      for (int64_t i = 0; i < n / 2; ++i)
        for (int key = 0; key < kTileKeys; key += L::width) {
          typename L::I x;
          std::memcpy(&x, pairs + i * kTileKeys + key, sizeof x);
          store<L>(to + 2 * i * kTileKeys + key, (typename L::F)(x << 16));
          store<L>(to + (2 * i + 1) * kTileKeys + key, (typename L::F)(x & -65536));
        }
    }
  }

  // to[key][padded(n)]
  static void pack_values(const char* const* rows, int n_keys, int64_t n, float* to,
                          Fetcher& fetcher) {
    const int64_t width = padded(n);
    for (int key = 0; key < n_keys; ++key, to += width) {
      widen_row<L>(reinterpret_cast<const E*>(rows[key]), n, to);
      fetcher.step();
      for (int64_t i = n; i < width; ++i) to[i] = 0.0f;
    }
  }

#if defined(__AVX512F__)
  // A row of values in registers: N vectors, the last with the numbers of `last`.
  template <int N>
  static void value_row(const char* const* rows, int, int64_t offset, __mmask16 last, __m512* row) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
      row[n] = _mm512_maskz_loadu_ps(n + 1 == N ? last : __mmask16{0xffff},
                                     rows[0] + offset + 64 * n);
  }
#endif

  // A copy of a packed tile in which keys outside [from, end) are zero.
  static void only_keys(const float* tile, int from, int end, int64_t width, float* to) {
    for (int64_t i = 0; i < kTileKeys * width; ++i)
      to[i] = i >= from * width && i < end * width ? tile[i] : 0.0f;
  }

  static bool is_finite(const float* tile, int64_t n) {
    bool finite = true;
    for (int64_t i = 0; i < n; ++i) finite &= tile[i] - tile[i] == 0.0f;
    return finite;
  }

  static void pack_weights(const typename L::F* weights, float* to) {
    std::memcpy(to, weights, 4 * kTileKeys);
  }
};

}  // namespace
}  // namespace sgc
