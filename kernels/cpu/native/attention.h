// Attention of a ragged batch over a paged pool; a page is one token's K and V.
#pragma once

#include <cstdint>
#include <memory>

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

// One layer's heads. K of a page: [n_kv_heads, head_dim]; V: [n_kv_heads, v_head_dim].
struct HeadShape {
  int32_t n_heads, n_kv_heads, head_dim, v_head_dim;
  Format format;  // of q, the pools and out
  float scale;
  int32_t window;      // 0: none
  float softcap;       // 0: none
  const float* sinks;  // [n_heads], or null
};

// Which work a step's attention is, computed once and used by all layers of like shape: rows that
// share leading pages are one item, long rows are split over their keys.
class AttentionPlan;
struct AttentionPlanDeleter {
  void operator()(AttentionPlan*) const;
};
using AttentionPlanPtr = std::unique_ptr<AttentionPlan, AttentionPlanDeleter>;

// `rows` must outlive the plan. deterministic: a token's result does not depend on other rows, on
// how its context was cut into chunks, or on the number of threads.
AttentionPlanPtr plan_attention(const Rows& rows, const HeadShape& shape, int n_threads,
                                bool deterministic);

// How many keys a layer reads in all, each KV head's counted.
int64_t n_reads(const AttentionPlan& plan);

// q: [n_tokens, n_heads, head_dim], row stride q_stride elements. out: [n_tokens, n_heads,
// v_head_dim], dense. The new tokens' K and V are in the pools already. Never reads a page that no
// row lists.
void attend(const AttentionPlan& plan, const HeadShape& shape, const void* q, int64_t q_stride,
            const void* k_pool, const void* v_pool, void* out, Threads& threads);

// How Q and K become what attention takes, after the QKV product: [n_tokens, (n_heads + 2 *
// n_kv_heads) * head_dim].
struct HeadsStep {
  int32_t n_heads, n_kv_heads, head_dim;
  Format format;
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
