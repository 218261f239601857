// Vectors of SGC_LANES floats, and functions of them. Included by sources of one instruction set,
// each with its own lanes and flags: everything is local to the source.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "numbers.h"

namespace sgc {
namespace {

constexpr int kLanes = SGC_LANES;

typedef float Floats __attribute__((vector_size(4 * SGC_LANES)));
typedef int32_t Ints __attribute__((vector_size(4 * SGC_LANES)));
typedef uint32_t Words __attribute__((vector_size(4 * SGC_LANES)));
typedef uint16_t Halves __attribute__((vector_size(2 * SGC_LANES)));

template <class To, class From>
SGC_INLINE To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

SGC_INLINE Floats load(const float* from) {
  Floats x;
  std::memcpy(&x, from, sizeof(x));
  return x;
}

SGC_INLINE Floats load(const bf16* from) {
  Halves x;
  std::memcpy(&x, from, sizeof(x));
  return bits_as<Floats>(__builtin_convertvector(x, Words) << 16);
}

// Written out: gcc 12 converts vectors of bytes one by one.
SGC_INLINE Ints widened(const int8_t* from) {
#if SGC_LANES == 16
  return bits_as<Ints>(
      _mm512_maskz_cvtepi8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#elif SGC_LANES == 8
  return bits_as<Ints>(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#elif defined(__x86_64__)
  const __m128i bytes = _mm_loadu_si32(from), twice = _mm_unpacklo_epi8(bytes, bytes);
  return bits_as<Ints>(_mm_srai_epi32(_mm_unpacklo_epi16(twice, twice), 24));
#else
  return Ints{from[0], from[1], from[2], from[3]};
#endif
}

SGC_INLINE Floats load(const int8_t* from) {
  return __builtin_convertvector(widened(from), Floats);
}

SGC_INLINE void store(float* to, Floats x) { std::memcpy(to, &x, sizeof(x)); }

SGC_INLINE void store(bf16* to, Floats x) {
  const Words bits = bits_as<Words>(x);
  const Words rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Words nan = (bits >> 16) | 0x40;
  const Halves halves =
      __builtin_convertvector((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded, Halves);
  std::memcpy(to, &halves, sizeof(halves));
}

SGC_INLINE Floats all(float x) { return x - Floats{}; }

// Within 2 units of the last place; where the result would not be a normal number, the nearest
// that is. A NaN stays one.
SGC_INLINE Floats exp(Floats x) {
  x = x > 88.3f ? all(88.3f) : x;
  x = x < -87.3f ? all(-87.3f) : x;
  const Floats magic = all(12582912.f);  // 1.5 * 2^23: adding it rounds to an integer
  const Floats shifted = x * 1.44269504f + magic;
  const Floats n = shifted - magic;
  const Floats r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.f;
  const Words exponent = (bits_as<Words>(shifted) - 0x4b400000 + 127) << 23;
  return p * bits_as<Floats>(exponent);
}

SGC_INLINE Floats silu(Floats x) { return x / (exp(-x) + 1.f); }

// x / 2 * (1 + tanh(y)) = x / (1 + exp(-2 y))
SGC_INLINE Floats gelu_tanh(Floats x) {
  const Floats y = (x * x * x * 0.044715f + x) * 0.7978845608f;
  return x / (exp(y * -2.f) + 1.f);
}

// x times the normal distribution's share below x, which is erfc(-x / sqrt 2) / 2. erfc as in
// Numerical Recipes (erfcc): relative error 1.2e-7 everywhere.
SGC_INLINE Floats gelu(Floats x) {
  const Floats z = (x < 0.f ? -x : x) * 0.70710678f;
  const Floats t = 1.f / (z * 0.5f + 1.f);
  Floats p = t * 0.17087277f - 0.82215223f;
  p = p * t + 1.48851587f;
  p = p * t - 1.13520398f;
  p = p * t + 0.27886807f;
  p = p * t - 0.18628806f;
  p = p * t + 0.09678418f;
  p = p * t + 0.37409196f;
  p = p * t + 1.00002368f;
  p = p * t - 1.26551223f;
  const Floats tail = t * exp(p - z * z) * 0.5f;
  return x * (x < 0.f ? tail : 1.f - tail);
}

SGC_INLINE Floats relu(Floats x) { return x < 0.f ? Floats{} : x; }  // a NaN stays one

}  // namespace
}  // namespace sgc
