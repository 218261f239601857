// Q and K on their way from the QKV product to attention: norms, rotation, and the write to the pools.
#include <algorithm>
#include <stdexcept>

#include "heads_kernel.h"
#include "isa.h"

namespace sgc {

extern const TokenHeads kHeadsPlain[2], kHeadsAvx2[2], kHeadsAvx512[2];  // by format

namespace {

constexpr int64_t kTokensPerItem = 4;

TokenHeads function_for(Format format) {
  const int i = static_cast<int>(format);
#if defined(__x86_64__)
  if (best() >= Isa::avx512) return kHeadsAvx512[i];
  if (best() >= Isa::avx2) return kHeadsAvx2[i];
#endif
  return kHeadsPlain[i];
}

void check(const HeadsStep& step) {
  if (step.n_heads <= 0 || step.n_kv_heads <= 0 || step.head_dim <= 0 ||
      step.head_dim > kMaxHeadDim)
    throw std::invalid_argument("heads of no shape that is known");
  if (step.n_rotated < 0 || step.n_rotated % 2 || step.n_rotated > step.head_dim)
    throw std::invalid_argument("n_rotated is odd or larger than a head");
  if (step.format != Format::f32 && step.format != Format::bf16)
    throw std::invalid_argument("an unknown format");
  if (step.pool_format != step.format && step.pool_format != Format::i8)
    throw std::invalid_argument("pages of a format that is not known");
}

}  // namespace

void write_heads(const HeadsStep& step, void* qkv, int64_t stride, int64_t n_tokens,
                 const float* cos, const float* sin, const int64_t* slots, void* k_pool,
                 void* v_pool, Threads& threads) {
  check(step);
  const TokenHeads write = function_for(step.format);
  const int64_t size = bytes_of(step.format), half = step.n_rotated / 2;
  const int64_t page = page_bytes(step.pool_format, step.n_kv_heads, step.head_dim);
  const auto at = [](void* memory, int64_t n) { return static_cast<char*>(memory) + n; };
  threads.run((n_tokens + kTokensPerItem - 1) / kTokensPerItem, [&](int64_t item, int) {
    const int64_t end = std::min(n_tokens, (item + 1) * kTokensPerItem);
    for (int64_t i = item * kTokensPerItem; i < end; ++i)
      write(step, at(qkv, i * stride * size), cos + i * half, sin + i * half,
            at(k_pool, slots[i] * page), at(v_pool, slots[i] * page));
  });
}

}  // namespace sgc
