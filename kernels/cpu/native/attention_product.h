// Products of a few rows of broadcast dwords with a packed tile: scores are queries by keys, outputs
// are weights by values. Every element is one chain of sums over the tile's rows in order, so that
// it does not depend on what is computed beside it.
#pragma once

#include "attention_math.h"

namespace sgc {
namespace {

constexpr int kBlockRows = 6;

template <class L>
inline typename L::F broadcast(const float* dword) {
  int32_t bits;
  std::memcpy(&bits, dword, 4);
  return (typename L::F)(bits - typename L::I{});
}

// c[m][0 .. N * width) = factors[m] * c[m] + sum over k in [from, end) of a[m][k] * b[k]; without
// factors, c is not read.
template <class Math, int M, int N>
inline void product(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t from,
                    int64_t end, const float* factors, float* c, int64_t c_stride, Fetcher& fetcher) {
  using L = typename Math::Lanes;
  typename L::F sums[M][N];
#pragma GCC unroll 6
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
      sums[m][n] = factors ? load<L>(c + m * c_stride + n * L::width) * all<L>(factors[m])
                           : typename L::F{};
  for (int64_t k = from; k < end; ++k) {
    fetcher.step();
    typename L::F row[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) row[n] = load<L>(b + k * b_stride + n * L::width);
#pragma GCC unroll 6
    for (int m = 0; m < M; ++m) {
      const auto value = broadcast<L>(a + m * a_stride + k);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sums[m][n] = Math::dot(sums[m][n], value, row[n]);
    }
  }
#pragma GCC unroll 6
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) store<L>(c + m * c_stride + n * L::width, sums[m][n]);
}

// The same for `width` columns, a multiple of the lanes.
template <class Math, int M>
void products(const float* a, int64_t a_stride, const float* b, int64_t b_stride, int64_t from,
              int64_t end, const float* factors, float* c, int64_t c_stride, int64_t width, Fetcher& fetcher) {
  constexpr int lanes = Math::Lanes::width;
  constexpr int N = lanes == 16 ? 4 : 2;  // sums that fit in the registers
  int64_t at = 0;
  for (; at + N * lanes <= width; at += N * lanes)
    product<Math, M, N>(a, a_stride, b + at, b_stride, from, end, factors, c + at, c_stride,
                        fetcher);
  const int64_t left = (width - at) / lanes;
  if (left == 1)
    product<Math, M, 1>(a, a_stride, b + at, b_stride, from, end, factors, c + at, c_stride,
                        fetcher);
  if constexpr (N == 4) {
    if (left == 2)
      product<Math, M, 2>(a, a_stride, b + at, b_stride, from, end, factors, c + at, c_stride,
                        fetcher);
    if (left == 3)
      product<Math, M, 3>(a, a_stride, b + at, b_stride, from, end, factors, c + at, c_stride,
                        fetcher);
  }
}

template <class Math>
using Products = void (*)(const float*, int64_t, const float*, int64_t, int64_t, int64_t,
                          const float*, float*, int64_t, int64_t, Fetcher&);

// By the number of rows, 1 to kBlockRows.
template <class Math>
constexpr Products<Math> kProducts[kBlockRows + 1] = {
    nullptr,           products<Math, 1>, products<Math, 2>, products<Math, 3>,
    products<Math, 4>, products<Math, 5>, products<Math, 6>};

}  // namespace
}  // namespace sgc
