// Cuts a step's attention into items.
#include <algorithm>
#include <climits>
#include <stdexcept>

#include "attention_plan.h"

namespace sgc {
namespace {

constexpr int32_t kItemRows = 112;     // queries by heads of a group in an item, or one query
constexpr int32_t kPageRows = 16;      // up to here an item takes all heads of a page
constexpr int32_t kPartsPerThread = 4;
constexpr int32_t kMinSegment = 256;   // a shorter part is not worth its merge
constexpr int32_t kFixedSegment = 512;
constexpr int32_t kGrain = 16;
constexpr int64_t kPackRows = 8;       // packing a tile costs about as much as so many rows

void check(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(what);
}

void check_shape(const HeadShape& shape) {
  check(shape.n_kv_heads > 0 && shape.n_heads > 0, "a shape without heads");
  check(shape.n_heads % shape.n_kv_heads == 0, "n_heads is no multiple of n_kv_heads");
  check(shape.head_dim > 0 && shape.v_head_dim > 0, "heads without dimensions");
  check(shape.head_dim <= 4096 && shape.v_head_dim <= 4096, "heads of more than 4096 dimensions");
  check(shape.window >= 0, "a negative window");
  check(shape.format == Format::f32 || shape.format == Format::bf16, "an unknown format");
  check(shape.pool_format == shape.format || shape.pool_format == Format::i8,
        "pages of a format that is not known");
}

std::vector<Row> read_rows(const Rows& rows, int32_t window) {
  check(rows.n_rows >= 0 && rows.n_rows < INT32_MAX, "too many rows");
  std::vector<Row> found(static_cast<size_t>(rows.n_rows));
  for (int64_t i = 0; i < rows.n_rows; ++i) {
    const int64_t n_new = rows.row_starts[i + 1] - rows.row_starts[i];
    const int64_t n_pages = rows.page_starts[i + 1] - rows.page_starts[i];
    check(n_new >= 1, "a row without new tokens");
    check(n_pages >= n_new, "a row with fewer pages than new tokens");
    check(n_pages < (1 << 30) && rows.row_starts[i + 1] < (1 << 30), "a row too long");
    Row& row = found[static_cast<size_t>(i)];
    row.pages = rows.pages + rows.page_starts[i];
    row.first_token = static_cast<int32_t>(rows.row_starts[i]);
    row.n_new = static_cast<int32_t>(n_new);
    row.n_pages = static_cast<int32_t>(n_pages);
    row.first_seen = window > 0 ? std::max(0, row.position(0) - window + 1) : 0;
  }
  return found;
}

class Planner {
 public:
  Planner(const Rows& rows, const HeadShape& shape, int n_threads, bool deterministic)
      : plan_(std::make_unique<AttentionPlan>()),
        n_threads_(std::max(1, n_threads)),
        deterministic_(deterministic),
        group_(shape.n_heads / shape.n_kv_heads),
        window_(shape.window),
        grain_(deterministic ? kTileKeys : kGrain),
        rows_(read_rows(rows, shape.window)),
        shared_(share(rows_, group_, grain_)) {
    plan_->shape = shape;
    plan_->shape.sinks = nullptr;
  }

  std::unique_ptr<AttentionPlan> take() {
    for (const Row& row : rows_) n_tokens_ = std::max(n_tokens_, row.first_token + row.n_new);
    choose_cuts();
    give_slots();
    for (const Piece& piece : shared_.pieces) add_piece(piece);
    order();
    return std::move(plan_);
  }

 private:
  int32_t tokens_of_item() const { return std::max(1, kItemRows / group_); }
  const int32_t* members(const Piece& piece) const {
    return shared_.members.data() + piece.first_member;
  }
  const Row& row_of(const Piece& piece) const {
    return rows_[static_cast<size_t>(*members(piece))];
  }
  int32_t n_queries(const Piece& piece) const {
    int32_t n = 0;
    for (int32_t i = 0; i < piece.n_members; ++i)
      n += rows_[static_cast<size_t>(members(piece)[i])].n_new;
    return n;
  }

  int64_t cost(int64_t n_queries, int64_t n_keys, int64_t n_kv) const {
    return (n_queries * group_ + kPackRows) * n_keys * n_kv;
  }

  // Whether small items take all KV heads, and after how many keys long ones are cut, so that all
  // threads have work.
  void choose_cuts() {
    const int64_t n_kv = plan_->shape.n_kv_heads;
    int64_t total = 0, n_small = 0, n_large = 0;
    for (const Piece& piece : shared_.pieces) {
      const int32_t n = n_queries(piece);
      const int64_t n_blocks = (n + tokens_of_item() - 1) / tokens_of_item();
      total += cost(n, keys_of(piece), n_kv);
      if (n * group_ <= kPageRows)
        n_small += std::max(1, keys_of(piece) / kFixedSegment);
      else
        n_large += n_blocks;
    }
    whole_pages_ = n_small + n_large * n_kv >= 3 * n_threads_;
    const int64_t most = std::max<int64_t>(1, total / (n_threads_ * kPartsPerThread));
    int32_t segment = INT32_MAX;
    for (const Piece& piece : shared_.pieces) {
      const int32_t n = std::min(n_queries(piece), tokens_of_item());
      const int32_t keys = keys_of(piece);
      const int64_t n_parts = (cost(n, keys, takes_page(n) ? n_kv : 1) + most - 1) / most;
      if (n_parts < 2 || keys < 2 * kMinSegment) continue;
      const int64_t part = (keys + n_parts - 1) / n_parts;
      segment = std::min<int32_t>(
          segment, std::max<int32_t>(kMinSegment, static_cast<int32_t>(part + 63) / 64 * 64));
    }
    longest_ = segment;
    plan_->segment = deterministic_ ? kFixedSegment : segment;
  }

  // Of a row's own piece the first block of queries stands for all.
  int32_t keys_of(const Piece& piece) const {
    const int32_t begin = std::max(piece.begin, row_of(piece).first_seen);
    return std::max(0, piece.end - begin);
  }
  bool takes_page(int32_t n_queries) const {
    return whole_pages_ && n_queries * group_ <= kPageRows;
  }

  // Tokens whose keys are in several items keep their states in slots, one for each segment.
  void give_slots() {
    tokens_.resize(static_cast<size_t>(n_tokens_));
    std::vector<bool> kept(rows_.size());
    for (const Piece& piece : shared_.pieces) {
      const bool is_split = longest_ != INT32_MAX && keys_of(piece) > longest_ &&
                            n_queries(piece) <= tokens_of_item();
      for (int32_t i = 0; i < piece.n_members; ++i)
        if (piece.n_members > 1 || is_split) kept[static_cast<size_t>(members(piece)[i])] = true;
    }
    for (size_t i = 0; i < rows_.size(); ++i)
      for (int32_t j = 0; kept[i] && j < rows_[i].n_new; ++j) {
        const int32_t token = rows_[i].first_token + j;
        Token& it = tokens_[static_cast<size_t>(token)];
        it.first_segment = first_seen(rows_[i].position(j)) / plan_->segment;
        it.slot = plan_->n_slots;
        const int32_t n = rows_[i].position(j) / plan_->segment - it.first_segment + 1;
        it.is_single = n == 1;
        if (n > 1) plan_->merges.push_back({token, it.slot, n});
        plan_->n_slots += n;
      }
  }
  int32_t first_seen(int32_t position) const {
    return window_ > 0 ? std::max(0, position - window_ + 1) : 0;
  }

  void add_piece(const Piece& piece) {
    const Row& row = row_of(piece);
    if (tokens_[static_cast<size_t>(row.first_token)].slot < 0) {
      add_items(piece, piece.begin, piece.end);
      return;
    }
    for (int32_t at = piece.begin; at < piece.end;) {
      const int64_t border = (int64_t{at} / plan_->segment + 1) * plan_->segment;
      const int32_t end = static_cast<int32_t>(std::min<int64_t>(border, piece.end));
      add_items(piece, at, end);
      at = end;
    }
  }

  // Items for the piece's keys [begin, end), which are of one segment if states are kept.
  void add_items(const Piece& piece, int32_t begin, int32_t end) {
    const int32_t segment = begin / plan_->segment;
    const int32_t first = static_cast<int32_t>(plan_->queries.size());
    int32_t level = 0;
    for (int32_t i = 0; i < piece.n_members; ++i) {
      const Row& row = rows_[static_cast<size_t>(members(piece)[i])];
      for (int32_t j = 0; j < row.n_new; ++j) {
        const int32_t last = row.position(j), token = row.first_token + j;
        if (last < begin || first_seen(last) >= end) continue;
        Token& it = tokens_[static_cast<size_t>(token)];
        if (it.slot < 0) {
          plan_->queries.push_back({token, last, -1, false, true});
          continue;
        }
        const bool continues = it.segment == segment;
        it.level = continues ? it.level + 1 : 0;
        it.segment = segment;
        level = std::max(level, it.level);
        plan_->queries.push_back({token, last, it.slot + segment - it.first_segment, continues,
                                  it.is_single && last < end});
      }
    }
    const int32_t n = static_cast<int32_t>(plan_->queries.size()) - first;
    for (int32_t at = 0; at < n; at += tokens_of_item())
      add_item(row_of(piece).pages, begin, end, first + at, std::min(tokens_of_item(), n - at),
               level);
    for (int32_t i = 0; i < n; ++i) {
      Token& it = tokens_[static_cast<size_t>(plan_->queries[static_cast<size_t>(first + i)].token)];
      it.level = level;
    }
  }

  void add_item(const int64_t* pages, int32_t begin, int32_t end, int32_t first, int32_t n,
                int32_t level) {
    int32_t from = end, to = begin;  // what these queries see
    for (int32_t i = first; i < first + n; ++i) {
      const int32_t last = plan_->queries[static_cast<size_t>(i)].last;
      from = std::min(from, first_seen(last) / grain_ * grain_);
      to = std::max(to, last + 1);
    }
    const int32_t n_kv = plan_->shape.n_kv_heads, step = takes_page(n) ? n_kv : 1;
    plan_->n_states = std::max(plan_->n_states, int64_t{n} * group_ * step);
    for (int32_t kv = 0; kv < n_kv; kv += step)
      plan_->items.push_back({pages, std::max(begin, from), std::min(end, to), first, n, kv,
                              kv + step, level});
  }

  // The largest items of a level come first, so that none is left over at its end.
  void order() {
    const auto of = [&](const Item& x) {
      return cost(x.n_queries, x.end - x.begin, x.kv_end - x.kv_begin);
    };
    std::stable_sort(plan_->items.begin(), plan_->items.end(), [&](const Item& a, const Item& b) {
      return a.level != b.level ? a.level < b.level : of(a) > of(b);
    });
    for (size_t i = 0; i < plan_->items.size(); ++i)
      if (i + 1 == plan_->items.size() || plan_->items[i].level != plan_->items[i + 1].level)
        plan_->level_ends.push_back(static_cast<int32_t>(i + 1));
  }

  struct Token {
    int32_t slot = -1, first_segment = 0;
    int32_t segment = -1, level = 0;  // of its last item
    bool is_single = true;            // has one slot
  };

  std::unique_ptr<AttentionPlan> plan_;
  const int32_t n_threads_;
  const bool deterministic_;
  const int32_t group_, window_, grain_;
  const std::vector<Row> rows_;
  const Pieces shared_;
  std::vector<Token> tokens_;
  int32_t n_tokens_ = 0;
  int32_t longest_ = INT32_MAX;  // keys of an item
  bool whole_pages_ = true;
};

}  // namespace

AttentionPlanPtr plan_attention(const Rows& rows, const HeadShape& shape, int n_threads,
                                bool deterministic) {
  check_shape(shape);
  return AttentionPlanPtr(Planner(rows, shape, n_threads, deterministic).take().release());
}

int64_t n_reads(const AttentionPlan& plan) {
  int64_t n = 0;
  for (const Item& item : plan.items)
    n += int64_t{item.end - item.begin} * (item.kv_end - item.kv_begin);
  return n;
}

void AttentionPlanDeleter::operator()(AttentionPlan* plan) const { delete plan; }

}  // namespace sgc
