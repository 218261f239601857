// One token's heads, for one instruction set. Written for the compiler to vectorize; all is internal
// to the file that includes it.
#pragma once

#include <cmath>
#include <cstring>

#include "attention.h"

namespace sgc {

// A head is taken apart into fp32 in a buffer of so many numbers.
constexpr int kMaxHeadDim = 4096;

// q, k, v of one token are in `qkv`; its K and V go to `k_page` and `v_page`.
using TokenHeads = void (*)(const HeadsStep& step, void* qkv, const float* cos, const float* sin,
                            void* k_page, void* v_page);

namespace {

SGC_INLINE void narrow(float x, float* to) { *to = x; }
SGC_INLINE void narrow(float x, bf16* to) { *to = to_bf16(x); }

// Sixteen sums, so that every width of registers adds in the same order.
inline float mean_square(const float* x, int n) {
  float lanes[16] = {};
  int i = 0;
  for (; i + 16 <= n; i += 16)
    for (int lane = 0; lane < 16; ++lane) lanes[lane] += x[i + lane] * x[i + lane];
  for (; i < n; ++i) lanes[i % 16] += x[i] * x[i];
  float sum = 0.0f;
  for (const float lane : lanes) sum += lane;
  return sum / static_cast<float>(n);
}

inline void norm(const HeadsStep& step, const float* weight, float* x) {
  const float scale = 1.0f / std::sqrt(mean_square(x, step.head_dim) + step.norm_eps);
  const float one = step.norm_adds_one ? 1.0f : 0.0f;
  for (int i = 0; i < step.head_dim; ++i) x[i] = x[i] * scale * (weight[i] + one);
}

inline void rotate(const HeadsStep& step, const float* cos, const float* sin, float* x) {
  const int half = step.n_rotated / 2;
  if (step.rope_interleaved) {
    for (int i = 0; i < half; ++i) {
      const float a = x[2 * i], b = x[2 * i + 1];
      x[2 * i] = a * cos[i] - b * sin[i];
      x[2 * i + 1] = b * cos[i] + a * sin[i];
    }
    return;
  }
  float* high = x + half;
#pragma GCC ivdep
  for (int i = 0; i < half; ++i) {
    const float a = x[i], b = high[i];
    x[i] = a * cos[i] - b * sin[i];
    high[i] = b * cos[i] + a * sin[i];
  }
}

template <class E>
void place(const HeadsStep& step, const float* weight, const float* cos, const float* sin, E* head) {
  if (!weight && step.n_rotated == 0) return;
  alignas(64) float x[kMaxHeadDim];
  const int n = step.head_dim;
  for (int i = 0; i < n; ++i) x[i] = to_float(head[i]);
  if (weight) norm(step, weight, x);
  if (step.n_rotated > 0) rotate(step, cos, sin, x);
  for (int i = 0; i < n; ++i) narrow(x[i], head + i);
}

// The nearest integers to a head's numbers over its scale, which makes the largest of them 127. What
// is not finite makes the scale NaN.
template <class E>
void quantize(const E* head, int n, int8_t* to, float* scale) {
  float most = 0.0f, spoilt = 0.0f;
  for (int i = 0; i < n; ++i) {
    const float x = std::fabs(to_float(head[i]));
    most = x > most ? x : most;
    spoilt += x - x;
  }
  const float step = (most > 1e-30f ? most : 1e-30f) / 127.0f;
  *scale = step + spoilt;
  const float inverse = spoilt == 0.0f ? 1.0f / step : 0.0f;
  for (int i = 0; i < n; ++i) {
    const float x = spoilt == 0.0f ? to_float(head[i]) * inverse : 0.0f;
    to[i] = static_cast<int8_t>(static_cast<int32_t>(std::nearbyint(x)));
  }
}

// K or V of all heads, to their page.
template <class E>
void write_page(const HeadsStep& step, const E* heads, void* page) {
  const int n = step.head_dim, n_heads = step.n_kv_heads;
  if (step.pool_format != Format::i8) {
    std::memcpy(page, heads, sizeof(E) * static_cast<size_t>(n_heads) * static_cast<size_t>(n));
    return;
  }
  char* scales = static_cast<char*>(page) + page_numbers(Format::i8, n_heads, n);
  for (int i = 0; i < n_heads; ++i) {
    float scale;
    quantize(heads + i * n, n, static_cast<int8_t*>(page) + i * n, &scale);
    std::memcpy(scales + 4 * i, &scale, 4);
  }
}

template <class E>
void token_heads(const HeadsStep& step, void* qkv, const float* cos, const float* sin, void* k_page,
                 void* v_page) {
  const int n = step.head_dim;
  E* head = static_cast<E*>(qkv);
  for (int i = 0; i < step.n_heads; ++i, head += n) place(step, step.q_norm, cos, sin, head);
  E* k = head;
  for (int i = 0; i < step.n_kv_heads; ++i, head += n) place(step, step.k_norm, cos, sin, head);
  write_page(step, k, k_page);
  write_page(step, head, v_page);
}

}  // namespace
}  // namespace sgc
