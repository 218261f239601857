// What the plan of attention hands to the kernels: items of work, each some queries against one
// range of keys. The kernels are compiled once for each instruction set; this header holds no code,
// so that none compiled for one machine is linked into another's path.
#pragma once

#include <cstdint>

#include "attention.h"

namespace sgc {

// Keys are taken in tiles of this many.
constexpr int kTileKeys = 64;
// Lanes of a running sum of weights, added up only at the end.
constexpr int kSumLanes = 16;

// A new token within an item. `last`: its own position in the context. `slot`: where its state is
// kept between items, or -1.
struct Query {
  int32_t token;
  int32_t last;
  int32_t slot;
  bool continues;  // starts from the slot's state
  bool finishes;   // writes the output, and not the slot
};

// Queries against the keys at positions [begin, end) of one context, for heads [kv_begin, kv_end).
struct Item {
  const int64_t* pages;  // of the context, from position 0
  int32_t begin, end;
  int32_t first_query, n_queries;
  int32_t kv_begin, kv_end;
  int32_t level;  // items of a level depend on those of lower levels alone
};

// A token whose slots are merged at the end: [slot, slot + n_slots).
struct Merge {
  int32_t token, slot, n_slots;
};

// The running softmax of one query and head: its weighted values [padded], its sum of weights
// [kSumLanes] and its largest score, in powers of two.
constexpr int64_t padded(int64_t n) { return (n + 15) / 16 * 16; }
constexpr int64_t state_floats(const HeadShape& shape) {
  return padded(shape.v_head_dim) + 2 * kSumLanes;
}

// One call of `attend`, the same for all of its items.
struct AttendCall {
  HeadShape shape;
  int32_t group;    // query heads of a KV head
  int32_t segment;  // keys that are summed from scratch, then merged; INT32_MAX: no such border
  const void* q;
  int64_t q_stride;
  const void* k_pool;
  const void* v_pool;
  void* out;
  const Query* queries;
  float* states;  // [slots, n_heads, state_floats]
};

// The code of one instruction set for one format. `scratch` is at a 64-byte boundary.
struct AttentionKernel {
  int64_t (*scratch_floats)(const HeadShape& shape, int64_t n_states);
  // next: what the thread is likely to run next, or null.
  void (*run)(const AttendCall& call, const Item& item, const Item* next, float* scratch);
  void (*merge)(const AttendCall& call, const Merge& merge, float* scratch);
};

extern const AttentionKernel kAttentionPlain, kAttentionPlainBf16;
#if defined(__x86_64__)
extern const AttentionKernel kAttentionAvx2, kAttentionAvx2Bf16;
extern const AttentionKernel kAttentionAvx512, kAttentionAvx512Bf16;
extern const AttentionKernel kAttentionBf16Dots;  // head_dim must be even
#endif

}  // namespace sgc
