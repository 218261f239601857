// i8 by rows of bf16 in 16 bits of fixed point: each step adds four products of bytes to each of 32
// columns, once for the rows' higher bytes and once for their lower ones. Sums of integers are exact,
// so that their order does not matter. Of a row's largest number, a step of fixed point is 1 / 32767:
// it errs less than rounding the row to bf16 did.
#include "matmul_kernel.h"

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // gcc 12: its own header, inlined
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#define SGC_LANES 16
#include "matmul_blocks.h"

namespace sgc {
namespace {

constexpr int64_t kLine = 64;
constexpr int32_t kHalf = 128;  // higher bytes are kept without a sign, this much larger

int64_t row_part(int64_t n_in) { return (n_in + kLine - 1) / kLine * kLine; }

// A row: its scale, in a line of its own; all higher bytes; all lower ones.
int64_t row_bytes(int64_t n_in) { return kLine + 2 * row_part(n_in); }

SGC_INLINE __m512 numbers_at(const bf16* x, int64_t left) {
  const auto mask = static_cast<__mmask16>(left < 16 ? (1u << left) - 1 : 0xffff);
  const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, x));
  return bits_as<__m512>(_mm512_slli_epi32(bits, 16));
}

// What is not finite makes the scale NaN, and so all of the row's results.
float scale_of(const bf16* x, int64_t n_in) {
  __m512 most = _mm512_setzero_ps(), spoilt = _mm512_setzero_ps();
  for (int64_t k = 0; k < n_in; k += 16) {
    const __m512 value = numbers_at(x + k, n_in - k);
    most = _mm512_max_ps(most, _mm512_abs_ps(value));
    spoilt = _mm512_add_ps(spoilt, _mm512_sub_ps(value, value));  // 0, or NaN for good
  }
  const float largest = _mm512_reduce_max_ps(most);
  return (largest > 1e-30f ? largest : 1e-30f) / 32767.f + _mm512_reduce_add_ps(spoilt);
}

void make_row(const bf16* x, int64_t n_in, char* row) {
  const float scale = scale_of(x, n_in);
  std::memcpy(row, &scale, 4);
  char* high = row + kLine;
  char* low = high + row_part(n_in);
  const __m512 inverse = _mm512_set1_ps(1.f / scale);
  for (int64_t k = 0; k < row_part(n_in); k += 16) {
    const int64_t left = n_in > k ? n_in - k : 0;
    const __m512 value = _mm512_mul_ps(numbers_at(x + k, left), inverse);
    const __m512i fixed = _mm512_add_epi32(_mm512_cvtps_epi32(value), _mm512_set1_epi32(kHalf << 8));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(high + k),
                     _mm512_cvtepi32_epi8(_mm512_srli_epi32(fixed, 8)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(low + k), _mm512_cvtepi32_epi8(fixed));
  }
}

// sums += bytes without a sign by bytes with one, four products to each. Of its intrinsic gcc 12
// makes two copies of each sum.
SGC_INLINE void add_dots(__m512i& sums, __m512i x, __m512i weights) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(x), "v"(weights));
}

SGC_INLINE __m512i all_quads(const char* at) {
  int32_t quad;
  std::memcpy(&quad, at, 4);
  return _mm512_set1_epi32(quad);
}

// Of one vector of columns: 256 * (high - kHalf * weights) + low, scaled.
SGC_INLINE __m512 joined(__m512i high, __m512i low, const char* head, int column, float scale) {
  const __m512i weights = _mm512_loadu_si512(head + 4 * (kColumns + column));
  const __m512i whole = _mm512_sub_epi32(high, _mm512_slli_epi32(weights, 7));
  const __m512 sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(whole), _mm512_set1_ps(256.f),
                                     _mm512_cvtepi32_ps(low));
  const __m512 scales = _mm512_loadu_ps(head + 4 * column);
  return _mm512_mul_ps(sum, _mm512_mul_ps(scales, _mm512_set1_ps(scale)));
}

struct ByteDots {
  using X = char;
  static constexpr int kRows = 6;  // 24 sums, of 32 registers
  static constexpr int64_t kStep = 128;

  template <int rows>
  static void sums(const char* x, int64_t stride, int64_t n_in, const char* panel, Ahead ahead,
                   float* out) {
    const char* head = panel;
    const int64_t to_low = row_part(n_in);
    __m512i high[rows][2], low[rows][2];
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      high[r][0] = high[r][1] = low[r][0] = low[r][1] = _mm512_setzero_si512();
    }
    const char* at = panel + head_bytes(kColumns);
    for (int64_t k = 0; k < n_in; k += 4, at += kStep, ahead.at += ahead.step) {
      _mm_prefetch(ahead.at, _MM_HINT_T0);
      _mm_prefetch(ahead.at + 64, _MM_HINT_T0);
      const __m512i w0 = _mm512_loadu_si512(at), w1 = _mm512_loadu_si512(at + 64);
#pragma GCC unroll 6
      for (int r = 0; r < rows; ++r) {
        const char* row = x + r * stride + kLine + k;
        const __m512i h = all_quads(row), l = all_quads(row + to_low);
        add_dots(high[r][0], h, w0);
        add_dots(high[r][1], h, w1);
        add_dots(low[r][0], l, w0);
        add_dots(low[r][1], l, w1);
      }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      float scale;
      std::memcpy(&scale, x + r * stride, 4);
      _mm512_storeu_ps(out + r * kColumns, joined(high[r][0], low[r][0], head, 0, scale));
      _mm512_storeu_ps(out + r * kColumns + kLanes,
                       joined(high[r][1], low[r][1], head, kLanes, scale));
    }
  }
};

}  // namespace

const Kernel* avx512_bf16_i8_kernel() {
  static constexpr RowForm form{row_bytes, make_row};
  static constexpr Kernel kernel{kColumns, ByteDots::kRows, Layout::quads, Format::bf16,
                                 multiply_blocks<ByteDots>, &form};
  return &kernel;
}

}  // namespace sgc

#else

namespace sgc {
const Kernel* avx512_bf16_i8_kernel() { return nullptr; }
}  // namespace sgc

#endif
