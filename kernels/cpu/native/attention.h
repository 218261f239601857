// What attention of a ragged batch over a paged pool is given; a page is one token's K and V.
// `attend.h` has what it does. The kernels include this, so no large header is here.
#pragma once

#include <cstdint>

#include "numbers.h"
#include "threads.h"

namespace sgc {

// A step's rows, as `kernels/interface.py: Ragged`. Token i of a row with n new tokens and c pages
// attends to the first c - n + i + 1 pages, of which a window leaves the last `window`.
struct Rows {
  int64_t n_rows;
  const int64_t* row_starts;   // [n_rows + 1] into the new tokens
  const int64_t* pages;        // all rows' pages
  const int64_t* page_starts;  // [n_rows + 1] into `pages`
};

// A page's K or V, as kernels/pages.py lays it out: [n_kv_heads, head_dim] numbers. In i8 scales
// follow, fp32, one for each head, at a multiple of their size.
constexpr int64_t page_numbers(Format format, int32_t n_heads, int32_t head_dim) {
  const int64_t n = int64_t{n_heads} * head_dim * bytes_of(format);
  return format == Format::i8 ? (n + 3) / 4 * 4 : n;
}
constexpr int64_t page_bytes(Format format, int32_t n_heads, int32_t head_dim) {
  return page_numbers(format, n_heads, head_dim) + (format == Format::i8 ? 4 * n_heads : 0);
}

// One layer's heads. K of a page: [n_kv_heads, head_dim]; V: [n_kv_heads, v_head_dim].
struct HeadShape {
  int32_t n_heads, n_kv_heads, head_dim, v_head_dim;
  Format format;       // of q and out
  Format pool_format;  // the same, or i8
  float scale;
  int32_t window;      // 0: none
  float softcap;       // 0: none
  const float* sinks;  // [n_heads], or null
};

// How Q and K become what attention takes, after the QKV product: [n_tokens, (n_heads + 2 *
// n_kv_heads) * head_dim].
struct HeadsStep {
  int32_t n_heads, n_kv_heads, head_dim;
  Format format;
  Format pool_format;  // the same, or i8
  const float* q_norm;  // [head_dim], or null: RMS norm of each head before it is rotated
  const float* k_norm;
  float norm_eps;
  bool norm_adds_one;     // weights are (1 + w), as Gemma's
  int32_t n_rotated;      // leading dimensions of a head that rotate (even); 0: none
  bool rope_interleaved;  // pairs are (2i, 2i + 1) and not (i, i + n_rotated / 2)
};

// Norms and rotates Q and K in place in `qkv`, and writes K and V to the pools' pages `slots`.
// cos, sin: [n_tokens, n_rotated / 2], fp32.
void write_heads(const HeadsStep& step, void* qkv, int64_t stride, int64_t n_tokens,
                 const float* cos, const float* sin, const int64_t* slots, void* k_pool,
                 void* v_pool, Threads& threads);

}  // namespace sgc
