#include "program.h"

#include <algorithm>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "program_checks.h"

namespace sgc {
namespace {

// Rows that one item of an elementwise operation takes; fewer rows than two items' run at once.
constexpr int64_t kRowsAtOnce = 4;

class Buffer {
 public:
  explicit Buffer(BufferRecord record) : record_(record) {}
  Buffer(Buffer&& other) noexcept
      : record_(other.record_), data_(std::exchange(other.data_, nullptr)),
        n_bytes_(std::exchange(other.n_bytes_, 0)), owns_(other.owns_) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() {
    if (owns_ && data_) release(data_, n_bytes_);
  }

  void reserve(int64_t n_rows) {
    const int64_t needed = n_rows * stride_bytes();
    if (needed <= n_bytes_) return;
    if (data_) release(data_, n_bytes_);
    data_ = nullptr;
    n_bytes_ = 0;
    data_ = allocate(needed + needed / 4);
    n_bytes_ = needed + needed / 4;
  }
  void borrow(void* data) {
    owns_ = false;
    data_ = data;
  }

  int64_t width() const { return record_.width; }
  Format format() const { return record_.format; }
  int64_t stride_bytes() const { return record_.width * bytes_of(record_.format); }
  int64_t bytes() const { return owns_ ? n_bytes_ : 0; }
  char* row(int64_t row, int64_t at = 0) const {
    return static_cast<char*>(data_) + row * stride_bytes() + at * bytes_of(record_.format);
  }

 private:
  BufferRecord record_;
  void* data_ = nullptr;
  int64_t n_bytes_ = 0;
  bool owns_ = true;
};

struct Angles {
  std::vector<float> cosines, sines;
};

using Pools = std::pair<void*, void*>;

}  // namespace

struct Program::State {
  State(std::vector<OpRecord> all, std::vector<Buffer> made, bool is_deterministic, Threads& pool)
      : ops(std::move(all)), buffers(std::move(made)), deterministic(is_deterministic),
        threads(pool) {}

  std::vector<OpRecord> ops;
  std::vector<Buffer> buffers;
  bool deterministic;
  Threads& threads;
  const RowFunctions& rows = row_functions();
  std::map<int32_t, Pools> pools;

  // Of the current step.
  const Step* step = nullptr;
  int64_t n_rows = 0;
  std::map<std::tuple<const float*, int32_t, float>, Angles> angles;
  std::map<const HeadShape*, AttentionPlanPtr> plans;

  void run_op(const OpRecord& op);
  void embed(const OpRecord& op);
  void norm(const OpRecord& op);
  void linear(const OpRecord& op);
  void heads(const OpRecord& op);
  void attend(const OpRecord& op);
  void select(const OpRecord& op);
  void cap(const OpRecord& op);
  void experts(const OpRecord& op);
  void adapt(const OpRecord& op);
  int64_t adapter_of(int64_t row) const;
  void expert(const OpRecord& op, int32_t index, std::span<const Routed> routed);
  const Angles& angles_of(const OpRecord& op);
  const AttentionPlan& plan_of(const OpRecord& op);

  // Calls work(row) for every row.
  template <class Work>
  void each_row(int64_t n, Work&& work) {
    if (n < 2 * kRowsAtOnce) {
      for (int64_t row = 0; row < n; ++row) work(row);
      return;
    }
    const int64_t n_items = (n + kRowsAtOnce - 1) / kRowsAtOnce;
    threads.run(n_items, [&](int64_t item, int) {
      const int64_t end = std::min(n, (item + 1) * kRowsAtOnce);
      for (int64_t row = item * kRowsAtOnce; row < end; ++row) work(row);
    });
  }
};

Program::Program(std::vector<OpRecord> ops, std::vector<BufferRecord> buffers, bool deterministic,
                 Threads& threads) {
  check_program(ops, buffers);
  std::vector<Buffer> made;
  made.reserve(buffers.size());
  for (const BufferRecord& record : buffers) made.emplace_back(record);
  state_ = std::make_unique<State>(std::move(ops), std::move(made), deterministic, threads);
}

Program::~Program() = default;

void Program::bind(int32_t layer, void* k_pool, void* v_pool) {
  state_->pools[layer] = {k_pool, v_pool};
}

int64_t Program::workspace_bytes() const {
  int64_t sum = 0;
  for (const Buffer& buffer : state_->buffers) sum += buffer.bytes();
  return sum;
}

void Program::run(const Step& step, float* logits) {
  State& state = *state_;
  check_step(step, state.ops);
  for (const OpRecord& op : state.ops)
    if (op.kind == OpKind::heads && !state.pools.contains(op.index))
      throw std::invalid_argument("layer " + std::to_string(op.index) + " has no pages");
  if (step.n_tokens == 0) return;
  state.buffers.back().borrow(logits);
  for (size_t i = 0; i + 1 < state.buffers.size(); ++i) state.buffers[i].reserve(step.n_tokens);
  state.step = &step;
  state.n_rows = step.n_tokens;
  state.angles.clear();
  state.plans.clear();
  for (const OpRecord& op : state.ops) {
    state.run_op(op);
    if (state.n_rows == 0) break;  // nothing is wanted, and all K and V are written
  }
  state.plans.clear();  // they refer to the step's arrays
}

void Program::State::run_op(const OpRecord& op) {
  switch (op.kind) {
    case OpKind::embed:
    case OpKind::place:
      return embed(op);
    case OpKind::norm:
      return norm(op);
    case OpKind::linear:
      return linear(op);
    case OpKind::heads:
      return heads(op);
    case OpKind::attend:
      return attend(op);
    case OpKind::select:
      return select(op);
    case OpKind::cap:
      return cap(op);
    case OpKind::experts:
      return experts(op);
    case OpKind::adapt:
      return adapt(op);
  }
}

void Program::State::embed(const OpRecord& op) {
  const Buffer& out = buffers[op.out];
  const int64_t entry_bytes = out.width() * bytes_of(op.format);
  const bool is_token = op.kind == OpKind::embed;
  const int64_t* ids = is_token ? step->tokens : step->positions;
  each_row(n_rows, [&](int64_t row) {
    const char* entry = static_cast<const char*>(op.weight) + ids[row] * entry_bytes;
    auto* x = reinterpret_cast<float*>(out.row(row));
    if (is_token) {
      rows.embed(entry, op.format, op.scale, x, out.width());
    } else {
      rows.add(entry, op.format, 1.0f, x, out.width());
    }
  });
}

void Program::State::norm(const OpRecord& op) {
  const Buffer &in = buffers[op.in], &out = buffers[op.out];
  const int64_t width = op.width ? op.width : in.width();
  const Norm norm{op.norm_kind, op.eps, static_cast<const float*>(op.weight), op.bias,
                  op.adds != 0};
  each_row(n_rows, [&](int64_t row) {
    rows.norm(norm, in.row(row, op.in_at), in.format(), out.row(row, op.out_at), out.format(),
              width);
  });
}

void Program::State::linear(const OpRecord& op) {
  const Buffer &in = buffers[op.in], &out = buffers[op.out];
  op.packed->multiply(in.row(0, op.in_at), in.width(), n_rows, op.epilogue, op.scale,
                      out.row(0, op.out_at), out.width(), !deterministic, threads);
}

void Program::State::heads(const OpRecord& op) {
  const Buffer& qkv = buffers[op.in];
  const auto [k, v] = pools.at(op.index);
  const float *cosines = nullptr, *sines = nullptr;
  if (op.heads->n_rotated) {
    const Angles& angles = angles_of(op);
    cosines = angles.cosines.data();
    sines = angles.sines.data();
  }
  write_heads(*op.heads, qkv.row(0), qkv.width(), n_rows, cosines, sines, step->slots, k, v,
              threads);
}

const Angles& Program::State::angles_of(const OpRecord& op) {
  const int64_t n = op.heads->n_rotated / 2;
  auto [at, is_new] = angles.try_emplace({op.inverse, op.heads->n_rotated, op.rope_scale});
  Angles& made = at->second;
  if (is_new) {
    made.cosines.resize(n_rows * n);
    made.sines.resize(n_rows * n);
    each_row(n_rows, [&](int64_t row) {
      rows.angles(static_cast<float>(step->positions[row]), op.inverse, op.rope_scale,
                  made.cosines.data() + row * n, made.sines.data() + row * n, n);
    });
  }
  return made;
}

void Program::State::attend(const OpRecord& op) {
  const Buffer &in = buffers[op.in], &out = buffers[op.out];
  const auto [k, v] = pools.at(op.index);
  sgc::attend(plan_of(op), *op.shape, in.row(0), in.width(), k, v, out.row(0), threads);
}

const AttentionPlan& Program::State::plan_of(const OpRecord& op) {
  AttentionPlanPtr& plan = plans[op.shape];
  if (!plan) {
    const Rows all{step->n_rows, step->row_starts, step->pages, step->page_starts};
    plan = plan_attention(all, *op.shape, threads.count(), deterministic);
  }
  return *plan;
}

void Program::State::select(const OpRecord& op) {
  n_rows = step->n_logits;
  if (n_rows == step->n_tokens) return;
  const auto gather = [&](const Buffer& buffer) {
    for (int64_t row = 0; row < n_rows; ++row)  // wanted ascends, so no row is lost
      if (step->wanted[row] != row)
        std::memcpy(buffer.row(row), buffer.row(step->wanted[row]), buffer.stride_bytes());
  };
  gather(buffers[op.in]);
  if (op.out != op.in) gather(buffers[op.out]);
}

void Program::State::cap(const OpRecord& op) {
  const Buffer& out = buffers[op.out];
  each_row(n_rows, [&](int64_t row) {
    rows.cap(reinterpret_cast<float*>(out.row(row)), op.scale, op.cap, out.width());
  });
}

void Program::State::experts(const OpRecord& op) {
  const ExpertsStep& step = *op.experts;
  const Buffer& logits = buffers[step.logits];
  const Routing routing(reinterpret_cast<const float*>(logits.row(0)), logits.width(), n_rows,
                        step);
  for (int32_t i = 0; i < step.n_experts; ++i)  // a row's sum is in the order of its experts
    if (const auto routed = routing.of(i); !routed.empty()) expert(op, i, routed);
}

void Program::State::expert(const OpRecord& op, int32_t index, std::span<const Routed> routed) {
  const ExpertsStep& step = *op.experts;
  const Buffer &in = buffers[op.in], &out = buffers[op.out];
  const Buffer &own = buffers[step.rows], &inner = buffers[step.inner], &wide = buffers[step.wide];
  const auto n = static_cast<int64_t>(routed.size());
  each_row(n, [&](int64_t i) {
    std::memcpy(own.row(i), in.row(routed[i].row), in.stride_bytes());
  });
  step.into[index]->multiply(own.row(0), own.width(), n, step.epilogue, 1.0f, inner.row(0),
                             inner.width(), !deterministic, threads);
  step.out_of[index]->multiply(inner.row(0), inner.width(), n, Epilogue::store_f32, 1.0f,
                               wide.row(0), wide.width(), !deterministic, threads);
  each_row(n, [&](int64_t i) {
    auto* x = reinterpret_cast<float*>(out.row(routed[i].row));
    rows.add(wide.row(i), Format::f32, op.scale * routed[i].weight, x, out.width());
  });
}

void Program::State::adapt(const OpRecord& op) {
  const Buffer &in = buffers[op.in], &out = buffers[op.out];
  const int64_t n_in = in.stride_bytes(), n_behind = out.stride_bytes() - n_in;
  each_row(n_rows, [&](int64_t row) {
    std::memcpy(out.row(row), in.row(row), n_in);
    std::memset(out.row(row) + n_in, 0, n_behind);
  });
  if (!step->adapters) return;
  for (int64_t start = 0, end; start < n_rows; start = end) {  // rows of one adapter at once
    const int64_t adapter = adapter_of(start);
    for (end = start + 1; end < n_rows && adapter_of(end) == adapter;) ++end;
    const Packed* down = adapter ? op.adapt->downs[adapter - 1] : nullptr;
    if (!down) continue;
    down->multiply(in.row(start), in.width(), end - start, Epilogue::store, 1.0f,
                   out.row(start, in.width() + op.adapt->at[adapter - 1]), out.width(),
                   !deterministic, threads);
  }
}

int64_t Program::State::adapter_of(int64_t row) const {
  return step->adapters[n_rows == step->n_tokens ? row : step->wanted[row]];
}

}  // namespace sgc
