#include "program_checks.h"

#include <stdexcept>
#include <string>

namespace sgc {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

class Checker {
 public:
  explicit Checker(const std::vector<BufferRecord>& buffers) : buffers_(buffers) {}

  void check(const OpRecord& op) const {
    require(is_buffer(op.in) && is_buffer(op.out), "an operation names a buffer that is not there");
    require(op.in_at >= 0 && op.out_at >= 0 && op.width >= 0, "a place in a row is negative");
    switch (op.kind) {
      case OpKind::embed:
      case OpKind::place:
        return check_embed(op);
      case OpKind::norm:
        return check_norm(op);
      case OpKind::linear:
        return check_linear(op);
      case OpKind::heads:
        return check_heads(op);
      case OpKind::attend:
        return check_attend(op);
      case OpKind::select:
        return;
      case OpKind::cap:
        return require(out(op).format == Format::f32, "only fp32 is capped");
      case OpKind::experts:
        return check_experts(op);
      case OpKind::adapt:
        return check_adapt(op);
    }
    throw std::invalid_argument("an operation is of no known kind");
  }

 private:
  bool is_buffer(int32_t index) const {
    return 0 <= index && index < static_cast<int32_t>(buffers_.size());
  }
  const BufferRecord& in(const OpRecord& op) const { return buffers_[op.in]; }
  const BufferRecord& out(const OpRecord& op) const { return buffers_[op.out]; }

  void check_embed(const OpRecord& op) const {
    require(op.weight && op.n_entries > 0, "a table without entries");
    require(out(op).format == Format::f32, "embeddings go to fp32");
  }

  void check_norm(const OpRecord& op) const {
    const int64_t width = op.width ? op.width : in(op).width;
    require(op.in_at + width <= in(op).width && op.out_at + width <= out(op).width,
            "a norm is wider than its row");
    require(!op.adds || out(op).format == Format::f32, "a norm is added to fp32");
  }

  void check_linear(const OpRecord& op) const {
    require(op.packed, "a product without a weight");
    const bool is_pair =
        op.epilogue == Epilogue::swiglu || op.epilogue == Epilogue::geglu_tanh;
    require(op.in_at + op.packed->n_in() <= in(op).width, "a product's input is too narrow");
    const int64_t n_out = is_pair ? op.packed->n_out() / 2 : op.packed->n_out();
    require(op.out_at + n_out <= out(op).width, "a product's output is too narrow");
    const bool is_wide = op.epilogue == Epilogue::add || op.epilogue == Epilogue::store_f32;
    require(out(op).format == (is_wide ? Format::f32 : in(op).format),
            "a product's output is of another format");
  }

  void check_heads(const OpRecord& op) const {
    require(op.heads, "an operation on heads without their shape");
    const HeadsStep& heads = *op.heads;
    require(heads.n_heads > 0 && heads.n_kv_heads > 0 && heads.head_dim > 0, "no heads");
    const int64_t width = (heads.n_heads + 2LL * heads.n_kv_heads) * heads.head_dim;
    require(width <= in(op).width, "Q, K and V are wider than their row");
    require(heads.format == in(op).format, "heads are of another format");
    require(heads.pool_format == heads.format || heads.pool_format == Format::i8,
            "pages of a format that is not known");
    require(heads.n_rotated == 0 || op.inverse, "a rotation without angles");
    require(heads.n_rotated % 2 == 0 && heads.n_rotated <= heads.head_dim,
            "a rotation is wider than its head");
  }

  void check_attend(const OpRecord& op) const {
    require(op.shape, "attention without its shape");
    const HeadShape& shape = *op.shape;
    require(shape.n_heads > 0 && shape.n_kv_heads > 0 && shape.n_heads % shape.n_kv_heads == 0,
            "heads are no multiple of KV heads");
    require(1LL * shape.n_heads * shape.head_dim <= in(op).width, "Q is wider than its row");
    require(1LL * shape.n_heads * shape.v_head_dim == out(op).width,
            "the output of attention is not as wide as its heads");
    require(shape.format == in(op).format && shape.format == out(op).format,
            "attention is of another format");
  }

  void check_experts(const OpRecord& op) const {
    require(op.experts, "a mixture without its experts");
    const ExpertsStep& step = *op.experts;
    require(0 < step.n_chosen && step.n_chosen <= step.n_experts, "too few experts");
    require(step.into && step.out_of, "experts without weights");
    for (int32_t buffer : {step.logits, step.rows, step.inner, step.wide})
      require(is_buffer(buffer), "experts name a buffer that is not there");
    require(buffers_[step.logits].format == Format::f32 &&
                buffers_[step.logits].width >= step.n_experts,
            "the router's logits are not fp32, or too few");
    require(buffers_[step.rows].width == in(op).width &&
                buffers_[step.rows].format == in(op).format,
            "an expert's rows are not those of the input");
    require(out(op).format == Format::f32 && buffers_[step.wide].width == out(op).width,
            "an expert's output is not what it is added to");
    for (int32_t i = 0; i < step.n_experts; ++i) {
      check_linear(product(step.rows, step.inner, step.into[i], step.epilogue));
      check_linear(product(step.inner, step.wide, step.out_of[i], Epilogue::store_f32));
    }
  }

  void check_adapt(const OpRecord& op) const {
    require(op.adapt && op.adapt->n_adapters > 0 && op.adapt->downs && op.adapt->at,
            "an operation on adapters without any");
    require(op.in != op.out && in(op).format == out(op).format,
            "what adapters make is of another format");
    require(in(op).width <= out(op).width, "adapters have no room for their input");
    for (int32_t i = 0; i < op.adapt->n_adapters; ++i) {
      const Packed* down = op.adapt->downs[i];
      if (!down) continue;
      require(down->n_in() == in(op).width, "an adapter takes another input");
      require(op.adapt->at[i] >= 0 &&
                  in(op).width + op.adapt->at[i] + down->n_out() <= out(op).width,
              "an adapter has no room for its output");
    }
  }

  static OpRecord product(int32_t in, int32_t out, const Packed* packed, Epilogue epilogue) {
    OpRecord op{};
    op.kind = OpKind::linear;
    op.in = in;
    op.out = out;
    op.epilogue = epilogue;
    op.packed = packed;
    return op;
  }

  const std::vector<BufferRecord>& buffers_;
};

void check_ids(const int64_t* ids, int64_t n, int64_t limit, const char* what) {
  for (int64_t i = 0; i < n; ++i) require(0 <= ids[i] && ids[i] < limit, what);
}

void check_starts(const int64_t* starts, int64_t n, const char* what) {
  require(starts[0] == 0, what);
  for (int64_t i = 0; i < n; ++i) require(starts[i] < starts[i + 1], what);
}

}  // namespace

void check_program(const std::vector<OpRecord>& ops, const std::vector<BufferRecord>& buffers) {
  require(!ops.empty() && !buffers.empty(), "a program without operations or buffers");
  require(buffers.back().format == Format::f32, "logits are fp32");
  for (const BufferRecord& buffer : buffers) require(buffer.width > 0, "a buffer without width");
  const Checker checker(buffers);
  for (const OpRecord& op : ops) checker.check(op);
}

void check_step(const Step& step, const std::vector<OpRecord>& ops) {
  require(step.n_tokens >= 0 && step.n_rows >= 0 && step.n_logits >= 0, "a negative count");
  if (step.n_tokens == 0) return require(step.n_rows == 0 && step.n_logits == 0, "no tokens");
  require(step.n_rows > 0, "tokens without rows");
  check_starts(step.row_starts, step.n_rows, "a row without new tokens");
  check_starts(step.page_starts, step.n_rows, "a row without pages");
  require(step.row_starts[step.n_rows] == step.n_tokens, "rows do not cover the tokens");
  for (int64_t row = 0; row < step.n_rows; ++row)
    require(step.page_starts[row + 1] - step.page_starts[row] >=
                step.row_starts[row + 1] - step.row_starts[row],
            "a row with fewer pages than new tokens");
  check_ids(step.pages, step.page_starts[step.n_rows], step.page_limit, "a page is not there");
  check_ids(step.slots, step.n_tokens, step.page_limit, "a slot is not there");
  check_ids(step.wanted, step.n_logits, step.n_tokens, "a wanted token is not there");
  for (int64_t i = 1; i < step.n_logits; ++i)
    require(step.wanted[i - 1] < step.wanted[i], "wanted tokens do not ascend");
  for (const OpRecord& op : ops) {
    if (op.kind == OpKind::embed)
      check_ids(step.tokens, step.n_tokens, op.n_entries, "a token is not in the vocabulary");
    if (op.kind == OpKind::place)
      check_ids(step.positions, step.n_tokens, op.n_entries, "a position is beyond the model's");
    if (op.kind == OpKind::adapt && step.adapters)
      check_ids(step.adapters, step.n_tokens, op.adapt->n_adapters + 1, "an adapter is not there");
  }
}

}  // namespace sgc
