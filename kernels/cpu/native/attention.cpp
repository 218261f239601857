// Runs a plan: level by level, each item by the kernel of this machine's instruction set.
#include "attend.h"

#include <new>
#include <stdexcept>

#include "attention_plan.h"
#include "isa.h"

namespace sgc {
namespace {

const AttentionKernel& kernel_for(const HeadShape& shape) {
  const bool is_f32 = shape.format == Format::f32;
#if defined(__x86_64__)
  const Isa isa = best();
  if (isa >= Isa::avx512_bf16 && !is_f32 && shape.head_dim % 2 == 0) return kAttentionBf16Dots;
  if (isa >= Isa::avx512) return is_f32 ? kAttentionAvx512 : kAttentionAvx512Bf16;
  if (isa >= Isa::avx2) return is_f32 ? kAttentionAvx2 : kAttentionAvx2Bf16;
#endif
  return is_f32 ? kAttentionPlain : kAttentionPlainBf16;
}

// Memory that a thread keeps from call to call: taken anew, its pages would be zeroed each time.
class KeptMemory {
 public:
  KeptMemory() = default;
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;
  ~KeptMemory() { free_it(); }

  float* at_least(int64_t n_floats) {
    if (n_floats > size_) {
      free_it();
      size_ = 0;
      memory_ = static_cast<float*>(::operator new(4 * static_cast<size_t>(n_floats), kAlign));
      size_ = n_floats;
    }
    return memory_;
  }

 private:
  static constexpr std::align_val_t kAlign{64};
  void free_it() {
    if (memory_) ::operator delete(memory_, kAlign);
    memory_ = nullptr;
  }
  float* memory_ = nullptr;
  int64_t size_ = 0;
};

float* scratch(int64_t n_floats) {
  static thread_local KeptMemory buffer;
  return buffer.at_least(n_floats);
}

float* states(int64_t n_floats) {
  static thread_local KeptMemory buffer;
  return buffer.at_least(n_floats);
}

void check_alike(const HeadShape& a, const HeadShape& b) {
  if (a.n_heads != b.n_heads || a.n_kv_heads != b.n_kv_heads || a.head_dim != b.head_dim ||
      a.v_head_dim != b.v_head_dim || a.format != b.format ||
      a.pool_format != b.pool_format || a.window != b.window)
    throw std::invalid_argument("the plan is for heads of another shape");
}

}  // namespace

void attend(const AttentionPlan& plan, const HeadShape& shape, const void* q, int64_t q_stride,
            const void* k_pool, const void* v_pool, void* out, Threads& threads) {
  check_alike(plan.shape, shape);
  const AttentionKernel& kernel = kernel_for(shape);
  AttendCall call;
  call.shape = shape;
  call.group = shape.n_heads / shape.n_kv_heads;
  call.segment = plan.segment;
  call.q = q;
  call.q_stride = q_stride;
  call.k_pool = k_pool;
  call.v_pool = v_pool;
  call.out = out;
  call.queries = plan.queries.data();
  call.states = states(int64_t{plan.n_slots} * shape.n_heads * state_floats(shape));
  const int64_t n_scratch = kernel.scratch_floats(shape, plan.n_states);
  int32_t begin = 0;
  for (const int32_t end : plan.level_ends) {
    threads.run(end - begin, [&](int64_t i, int) {
      const Item* item = plan.items.data() + begin + i;
      const Item* next = i + threads.count() < end - begin ? item + threads.count() : nullptr;
      kernel.run(call, *item, next, scratch(n_scratch));
    });
    begin = end;
  }
  if (!plan.merges.empty())
    threads.run(static_cast<int64_t>(plan.merges.size()), [&](int64_t i, int) {
      kernel.merge(call, plan.merges[static_cast<size_t>(i)], scratch(n_scratch));
    });
}

}  // namespace sgc
