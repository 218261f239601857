// What of attention the library exports. Page ids and slots are the caller's to check.
#include <stdexcept>

#include "abi.h"
#include "attend.h"

namespace sgc {
namespace {

template <class T>
const T& needed(const T* argument) {
  if (argument == nullptr) throw std::invalid_argument("a null argument");
  return *argument;
}

template <class... T>
void need_all(const T*... arguments) {
  if (((arguments == nullptr) || ...)) throw std::invalid_argument("a null argument");
}

}  // namespace
}  // namespace sgc

using sgc::guarded;

// row_starts, pages and page_starts must outlive the plan.
SGC_EXPORT sgc::AttentionPlan* sgc_attention_plan(int64_t n_rows, const int64_t* row_starts,
                                                  const int64_t* pages, const int64_t* page_starts,
                                                  const sgc::HeadShape* shape, int32_t n_threads,
                                                  int32_t deterministic) {
  return guarded(static_cast<sgc::AttentionPlan*>(nullptr), [&] {
    sgc::need_all(row_starts, page_starts);
    const sgc::Rows rows{n_rows, row_starts, pages, page_starts};
    return sgc::plan_attention(rows, sgc::needed(shape), n_threads, deterministic != 0).release();
  });
}

SGC_EXPORT void sgc_attention_plan_free(sgc::AttentionPlan* plan) {
  sgc::AttentionPlanDeleter()(plan);
}

// How many keys a layer reads in all, each KV head's counted: what rows share is counted once.
SGC_EXPORT int64_t sgc_attention_plan_reads(const sgc::AttentionPlan* plan) {
  return guarded(int64_t{-1}, [&] { return sgc::n_reads(sgc::needed(plan)); });
}

SGC_EXPORT int32_t sgc_attend(const sgc::AttentionPlan* plan, const sgc::HeadShape* shape,
                              const void* q, int64_t q_stride, const void* k_pool,
                              const void* v_pool, void* out, sgc::Threads* threads) {
  return guarded(-1, [&] {
    sgc::need_all(plan, shape, threads);
    if (q_stride < int64_t{shape->n_heads} * shape->head_dim)
      throw std::invalid_argument("rows of q overlap");
    sgc::attend(*plan, *shape, q, q_stride, k_pool, v_pool, out, *threads);
    return 0;
  });
}

SGC_EXPORT int32_t sgc_write_heads(const sgc::HeadsStep* step, void* qkv, int64_t stride,
                                   int64_t n_tokens, const float* cos, const float* sin,
                                   const int64_t* slots, void* k_pool, void* v_pool,
                                   sgc::Threads* threads) {
  return guarded(-1, [&] {
    sgc::need_all(step, threads);
    if (n_tokens < 0 || stride < (step->n_heads + 2 * int64_t{step->n_kv_heads}) * step->head_dim)
      throw std::invalid_argument("a row of qkv is shorter than its heads");
    sgc::write_heads(*step, qkv, stride, n_tokens, cos, sin, slots, k_pool, v_pool, *threads);
    return 0;
  });
}
