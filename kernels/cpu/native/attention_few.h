// Few queries against a tile whose keys they all see, as when each row has one new token: pages are
// read from start to end, sixteen keys at a time, and go to the arithmetic without being packed.
// Every sum is added in the order of `product`, so that results are the same to the bit.
#pragma once

#include "attention_math.h"

namespace sgc {
namespace {

constexpr int kFewRows = 8;   // of a KV head
constexpr int kFewBlock = 4;  // of them, that go over values together

#if defined(__AVX512F__)

// scores[m][0 .. 16) = sums over the dwords of one head's keys. queries: [n_dwords, kFewRows].
template <class Math, int M>
inline void few_scores(const char* const* rows, int64_t offset, int64_t n_dwords,
                       const float* queries, float* scores, Fetcher& fetcher) {
  constexpr int kStep = M >= 4 ? 4 : 8;  // more queries take longer, so that more can be asked for
  __m512 sums[M] = {};
  for (int64_t at = 0; at < n_dwords; at += 16) {
    const int64_t left = n_dwords - at < 16 ? n_dwords - at : 16;
    const auto mask = static_cast<__mmask16>((1u << left) - 1);
    __m512i x[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      x[i] = _mm512_maskz_loadu_epi32(mask, rows[i] + offset + 4 * at);
      if (i % kStep == 0) fetcher.step();
    }
    transpose_registers(x);
    const float* query = queries + at * kFewRows;
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if (i >= left) break;
      if (M >= 4 && i % kStep == 0) fetcher.step();
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m)
        sums[m] = Math::dot(sums[m], _mm512_set1_ps(query[i * kFewRows + m]), (__m512)x[i]);
    }
  }
#pragma GCC unroll 8
  for (int m = 0; m < M; ++m) _mm512_storeu_ps(scores + m * kTileKeys, sums[m]);
}

// values[m][0 .. width) = factors[m] * values[m] + weights of n_keys keys by their rows. N: vectors
// of 16, of which the last has `last` numbers.
template <class Math, int M, int N>
inline void few_values(const char* const* rows, int n_keys, int64_t offset, __mmask16 last,
                       const float* weights, int64_t weights_stride, const float* factors,
                       float* values, int64_t values_stride, Fetcher& fetcher) {
  __m512 sums[M][N];
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
      sums[m][n] = _mm512_loadu_ps(values + m * values_stride + 16 * n) *
                   _mm512_set1_ps(factors[m]);
  for (int key = 0; key < n_keys; key += Math::per_dword) {
    __m512 row[N];
    Math::template value_row<N>(rows + key, n_keys - key, offset, last, row);
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) {
      const auto weight = _mm512_set1_ps(weights[m * weights_stride + key / Math::per_dword]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sums[m][n] = Math::dot(sums[m][n], weight, row[n]);
    }
    fetcher.step();
  }
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
      _mm512_storeu_ps(values + m * values_stride + 16 * n, sums[m][n]);
}

template <class Math>
using FewScores = void (*)(const char* const*, int64_t, int64_t, const float*, float*, Fetcher&);

// By the number of rows, 1 to kFewRows.
template <class Math>
constexpr FewScores<Math> kFewScores[kFewRows + 1] = {
    nullptr,             few_scores<Math, 1>, few_scores<Math, 2>,
    few_scores<Math, 3>, few_scores<Math, 4>, few_scores<Math, 5>,
    few_scores<Math, 6>, few_scores<Math, 7>, few_scores<Math, 8>};

template <class Math>
using FewValues = void (*)(const char* const*, int, int64_t, __mmask16, const float*, int64_t,
                           const float*, float*, int64_t, Fetcher&);

template <class Math, int M>
constexpr FewValues<Math> kFewValues[5] = {nullptr, few_values<Math, M, 1>, few_values<Math, M, 2>,
                                           few_values<Math, M, 3>, few_values<Math, M, 4>};

// Rows 1 to kFewBlock, over all numbers of a head.
template <class Math>
inline void few_values_of(int n_rows, const char* const* rows, int n_keys, int64_t head_dim,
                          int64_t kv, const float* weights, int64_t weights_stride,
                          const float* factors, float* values, int64_t values_stride,
                          Fetcher& fetcher) {
  constexpr const FewValues<Math>* functions[kFewBlock + 1] = {
      nullptr, kFewValues<Math, 1>, kFewValues<Math, 2>, kFewValues<Math, 3>, kFewValues<Math, 4>};
  constexpr int64_t size = sizeof(typename Math::Element);
  for (int64_t at = 0; at < head_dim; at += 64) {
    const int64_t left = head_dim - at < 64 ? head_dim - at : 64;
    const auto last = static_cast<__mmask16>((1u << ((left - 1) % 16 + 1)) - 1);
    functions[n_rows][(left + 15) / 16](rows, n_keys, size * (kv * head_dim + at), last, weights,
                                        weights_stride, factors, values + at, values_stride,
                                        fetcher);
  }
}

#endif

}  // namespace
}  // namespace sgc
