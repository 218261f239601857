// A model's forward pass as data: a list of operations over buffers of activations, run in one call
// a step. Nothing here knows a model family; `runtime/engine/model/native` writes the lists.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attend.h"
#include "experts.h"
#include "matmul.h"
#include "rows.h"

namespace sgc {

enum class OpKind : int32_t {
  embed = 0,  // out = scale * weight[token]; weight: [vocab, width], of `format`
  place,      // out += weight[position]: learned positions
  norm,       // out = norm(in), or out += norm(in)
  linear,     // out = epilogue(in @ packed)
  heads,      // Q and K of `in` are normed and rotated in place; K and V go to the layer's pages
  attend,     // out = attention of the Q in `in` to the layer's pages
  select,     // from here on, rows are the wanted ones; of `in`, and of `out` if it is another
  cap,        // in place: out = cap * tanh(scale * out / cap); a cap of 0 only scales
  experts,    // out += scale * what the experts that each row of `in` goes to give for it
  adapt,      // out = a row of `in`, then what its adapter makes of it; zeros in others' columns
};

// What adapters add to a product: each narrows its rows of the input (`downs`), and the product's
// weight is longer by what widens them again. Laid out as kernels/cpu/program.py lays it out.
struct AdaptStep {
  int32_t n_adapters;
  const Packed* const* downs;  // [n_adapters]; null: the adapter leaves this product as it is
  const int32_t* at;           // [n_adapters]: its first column behind the input's
};

// One operation, laid out as kernels/cpu/program.py lays it out. in, out: buffers. in_at, out_at:
// the first element of a row that is used; width: how many (norm); 0 for the whole row. index: a
// layer's pages (heads, attend). Which fields an operation reads is said above.
struct OpRecord {
  OpKind kind;
  int32_t in, out, in_at, out_at, width, index;
  Epilogue epilogue;
  NormKind norm_kind;
  int32_t adds;
  Format format;
  float scale, eps, cap;
  const void* weight;
  const float* bias;
  const Packed* packed;
  const HeadShape* shape;
  const HeadsStep* heads;
  const float* inverse;  // [n_rotated / 2]: the angle of position 1, for each pair of dimensions
  float rope_scale;
  int64_t n_entries;  // rows of `weight` (embed, place)
  const ExpertsStep* experts;
  const AdaptStep* adapt;
};

// A buffer of activations: [rows, width]. The last one is the logits, fp32, in the caller's memory.
struct BufferRecord {
  int32_t width;
  Format format;
};

// One step, as runtime/engine/model/forward.py: FlatBatch. wanted ascends. page_limit: pages that
// each layer's pools have. adapters: [n_tokens], the adapter of each from 1 on, 0 for none; or null.
struct Step {
  int64_t n_tokens, n_rows, n_logits, page_limit;
  const int64_t *tokens, *positions, *slots, *row_starts, *pages, *page_starts, *wanted, *adapters;
};

class Program {
 public:
  // Everything that a record points to must outlive the program. Throws std::invalid_argument.
  Program(std::vector<OpRecord> ops, std::vector<BufferRecord> buffers, bool deterministic,
          Threads& threads);
  ~Program();

  // The pools of a layer: [page_limit, n_kv_heads, head_dim] each.
  void bind(int32_t layer, void* k_pool, void* v_pool);

  // logits: [n_logits, width of the last buffer]. Throws std::invalid_argument before anything is
  // written if the step cannot be run.
  void run(const Step& step, float* logits);

  int64_t workspace_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sgc
