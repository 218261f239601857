// Vectors of floats for the kernels of attention: 4 lanes everywhere (SSE2, NEON), 8 with AVX2, 16
// with AVX-512. All is internal to the file that includes it, since each is compiled for its own
// instruction set. Multiply-adds are written out: none is left to the compiler, which might contract
// one copy of a function and not another.
#pragma once

#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // gcc 12: its own header, inlined
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace sgc {
namespace {

template <int W>
struct Lanes {
  static constexpr int width = W;
  typedef float F __attribute__((vector_size(4 * W)));
  typedef int32_t I __attribute__((vector_size(4 * W)));
};

template <class L>
inline typename L::F load(const float* from) {
  typename L::F x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

template <class L>
inline void store(float* to, typename L::F x) {
  std::memcpy(to, &x, sizeof x);
}

template <class L>
inline typename L::F all(float x) {
  return x - typename L::F{};  // minus zero stays minus zero
}

template <class L>
inline typename L::I counted() {
  typename L::I lanes;
  for (int i = 0; i < L::width; ++i) lanes[i] = i;
  return lanes;
}

inline Lanes<4>::F fma(Lanes<4>::F a, Lanes<4>::F b, Lanes<4>::F c) {
#if defined(__FMA__)
  return _mm_fmadd_ps(a, b, c);
#elif defined(__ARM_NEON)
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}
// The larger; a NaN in `x` stays.
inline Lanes<4>::F at_least(Lanes<4>::F x, Lanes<4>::F least) {
#if defined(__x86_64__)
  return _mm_max_ps(least, x);
#else
  return x < least ? least : x;
#endif
}
#if defined(__AVX2__) && defined(__FMA__)
inline Lanes<8>::F fma(Lanes<8>::F a, Lanes<8>::F b, Lanes<8>::F c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Lanes<8>::F at_least(Lanes<8>::F x, Lanes<8>::F least) { return _mm256_max_ps(least, x); }
#endif
#if defined(__AVX512F__)
inline Lanes<16>::F fma(Lanes<16>::F a, Lanes<16>::F b, Lanes<16>::F c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Lanes<16>::F at_least(Lanes<16>::F x, Lanes<16>::F least) { return _mm512_max_ps(least, x); }
#endif

template <class L>
inline float largest(typename L::F x) {
  float values[L::width];
  std::memcpy(values, &x, sizeof x);
  for (int n = L::width / 2; n > 0; n /= 2)
    for (int i = 0; i < n; ++i) values[i] = values[i + n] > values[i] ? values[i + n] : values[i];
  return values[0];
}
#if defined(__AVX512F__)
template <>
inline float largest<Lanes<16>>(Lanes<16>::F x) {
  return _mm512_reduce_max_ps(x);
}
#endif

// 2^f for f in [-1/2, 1/2], within 2e-7 of it (coefficients of Cephes), or within 5e-6.
template <class L>
inline typename L::F exp2_fraction(typename L::F f) {
  auto p = all<L>(1.535336188319500e-4f);
  p = fma(p, f, all<L>(1.339887440266574e-3f));
  p = fma(p, f, all<L>(9.618437357674640e-3f));
  p = fma(p, f, all<L>(5.550332471162809e-2f));
  p = fma(p, f, all<L>(2.402264791363012e-1f));
  p = fma(p, f, all<L>(6.931472028550421e-1f));
  return fma(p, f, all<L>(1.0f));
}

// 2^x, 0 below 2^-126; x is at most 100. A NaN stays one.
template <class L>
inline typename L::F exp2(typename L::F x) {
#if defined(__AVX512F__)
  if constexpr (L::width == 16) {
    x = at_least(x, all<L>(-200.0f));  // minus infinity has no fraction
    const auto n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    return _mm512_scalef_ps(exp2_fraction<L>(x - n), n);
  }
#endif
  const auto clamped = at_least(x, all<L>(-126.0f));
  const auto magic = all<L>(12582912.0f);  // its unit is 1: adding it rounds to whole numbers
  const auto shifted = clamped + magic;
  const auto f = clamped - (shifted - magic);
  const auto power = (typename L::I)shifted << 23;
  const auto value = (typename L::F)((typename L::I)exp2_fraction<L>(f) + power);
  const auto finite = x < all<L>(-126.0f) ? all<L>(0.0f) : value;
  return x == x ? finite : x;
}

// 2^x of one number, by the same steps in every place that merges states.
inline float exp2_of(float x) { return exp2<Lanes<4>>(all<Lanes<4>>(x))[0]; }

template <class L>
inline typename L::F tanh(typename L::F x) {
  auto y = x < all<L>(-15.0f) ? all<L>(-15.0f) : x;
  y = y > all<L>(15.0f) ? all<L>(15.0f) : y;
  const auto e = exp2<L>(y * all<L>(2.8853900817779268f));  // e^(2y)
  return all<L>(1.0f) - all<L>(2.0f) / (e + all<L>(1.0f));
}

}  // namespace
}  // namespace sgc
