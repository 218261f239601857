// Attention of a ragged batch over a paged pool.
#pragma once

#include <memory>

#include "attention.h"

namespace sgc {

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

}  // namespace sgc
