// One item of attention: tile by tile, keys and values are packed once for each KV head, and blocks
// of queries go over them. Included once by the file of each instruction set.
#pragma once

#include "attention_few.h"
#include "attention_softmax.h"

namespace sgc {
namespace {

// The parts of a thread's scratch memory.
struct Scratch {
  float* queries;   // [n_states, dwords of a key]
  float* few_queries;  // [KV heads, dwords of a key, kFewRows], where there are no more
  float* keys;      // [dwords of a key, kTileKeys]
  float* values;    // [kTileKeys / per_dword, padded(v_head_dim)]
  float* some;      // the same, with some keys only
  float* scores;    // [kBlockRows or, of few queries, n_states, kTileKeys]
  float* weights;   // the same
  float* factors;   // [n_states]
  float* states;    // [n_states, state_floats]
  float* totals;    // the same, of earlier segments
  void* numbers;    // rows of pages of i8, as Elements: [of_pages, head_dim]
  int64_t n_floats;
};

template <class Math>
int64_t dwords(const HeadShape& shape) {
  return (shape.head_dim + Math::per_dword - 1) / Math::per_dword;
}

// At once: a head of a tile's keys, or all heads of sixteen keys.
inline int64_t kept_rows(const HeadShape& shape) {
  const int64_t n = int64_t{16} * shape.n_kv_heads;
  return n > kTileKeys ? n : kTileKeys;
}

template <class Math>
Scratch divide(float* memory, const HeadShape& shape, int64_t n_states) {
  int64_t used = 0;
  const auto take = [&](int64_t n) {
    float* at = memory ? memory + used : nullptr;
    used += padded(n);
    return at;
  };
  const int64_t n_values = kTileKeys / Math::per_dword * padded(shape.v_head_dim);
  Scratch scratch;
  scratch.queries = take(n_states * dwords<Math>(shape));
  scratch.few_queries = take(n_states * kFewRows * dwords<Math>(shape));
  scratch.keys = take(dwords<Math>(shape) * kTileKeys);
  scratch.values = take(n_values);
  scratch.some = take(n_values);
  const int64_t n_rows = n_states > kBlockRows ? n_states : kBlockRows;
  scratch.scores = take(n_rows * kTileKeys);
  scratch.weights = take(n_rows * kTileKeys);
  scratch.factors = take(n_states);
  scratch.states = take(n_states * state_floats(shape));
  scratch.totals = take(n_states * state_floats(shape));
  const int64_t n_dims = shape.head_dim > shape.v_head_dim ? shape.head_dim : shape.v_head_dim;
  scratch.numbers = take(shape.pool_format == Format::i8 ? kept_rows(shape) * n_dims : 0);
  scratch.n_floats = used;
  return scratch;
}

template <class Math>
int64_t scratch_floats(const HeadShape& shape, int64_t n_states) {
  return divide<Math>(nullptr, shape, n_states).n_floats;
}

// What of a tile a query sees.
struct Seen {
  int from, end;
};
inline Seen seen(const Query& query, int32_t window, int begin, int n_keys) {
  const int64_t end = static_cast<int64_t>(query.last) + 1 - begin;
  const int64_t from = window > 0 ? end - window : 0;
  return {static_cast<int>(from < 0 ? 0 : from > n_keys ? n_keys : from),
          static_cast<int>(end < 0 ? 0 : end > n_keys ? n_keys : end)};
}

template <class Math>
struct Run {
  using Element = typename Math::Element;

  const AttendCall& call;
  const Item& item;
  const HeadShape& shape;
  const Query* queries;
  Scratch scratch;
  int rows_of_kv;  // queries by heads of a group
  const Item* next;  // what this thread is likely to run next, or null
  Fetcher fetcher;   // of the next tile

  Run(const AttendCall& call, const Item& item, const Item* next, float* memory)
      : call(call),
        item(item),
        shape(call.shape),
        queries(call.queries + item.first_query),
        scratch(divide<Math>(
            memory, call.shape,
            int64_t{item.n_queries} * call.group * (item.kv_end - item.kv_begin))),
        rows_of_kv(item.n_queries * call.group),
        next(next) {}

  template <class Work>  // work(row, query, head)
  void for_rows(Work&& work) {
    int row = 0;
    for (int kv = item.kv_begin; kv < item.kv_end; ++kv)
      for (int i = 0; i < item.n_queries; ++i)
        for (int h = 0; h < call.group; ++h) work(row++, queries[i], kv * call.group + h);
  }

  State state(int row) const { return state_at(scratch.states, row, shape); }
  State total(int row) const { return state_at(scratch.totals, row, shape); }
  State kept(const Query& query, int head) const {
    return state_at(call.states, int64_t{query.slot} * shape.n_heads + head, shape);
  }
  void copy(State from, State to) const {
    std::memcpy(to.values, from.values, 4 * static_cast<size_t>(state_floats(shape)));
  }

  void begin() {
    const int64_t n = dwords<Math>(shape);
    for_rows([&](int row, const Query& query, int head) {
      const Element* q = static_cast<const Element*>(call.q) + query.token * call.q_stride +
                         int64_t{head} * shape.head_dim;
      Math::pack_query(q, shape.head_dim, scratch.queries + row * n);
      if (query.continues)
        copy(kept(query, head), state(row));
      else
        clear(state(row), shape);
    });
    if (Math::has_few && rows_of_kv <= kFewRows) spread_queries(n);
  }

  void spread_queries(int64_t n) {
    for (int row = 0; row < rows_of_kv * (item.kv_end - item.kv_begin); ++row) {
      const float* from = scratch.queries + row * n;
      float* to = scratch.few_queries + row / rows_of_kv * n * kFewRows + row % rows_of_kv;
      for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * kFewRows, from + i, 4);
    }
  }

  void end(bool has_totals) {
    for_rows([&](int row, const Query& query, int head) {
      State last = state(row);
      if (has_totals) {
        merge_states<Math>(total(row), last, shape);
        last = total(row);
      }
      if (query.finishes)
        finish<Math>(last, shape, head, output(call, query.token, head));
      else
        copy(last, kept(query, head));
    });
  }

  static Element* output(const AttendCall& call, int token, int head) {
    return static_cast<Element*>(call.out) +
           (int64_t{token} * call.shape.n_heads + head) * call.shape.v_head_dim;
  }

  void next_segment(bool has_totals) {
    for_rows([&](int row, const Query&, int) {
      if (!has_totals) clear(total(row), shape);
      merge_states<Math>(total(row), state(row), shape);
      clear(state(row), shape);
    });
  }

  // Lists some keys' rows of a pool, from head `kv` on, the last one again up to a multiple of
  // sixteen. Of pages of i8 they are rows of scratch memory, for `n_heads` heads.
  void list_rows(const void* pool, int64_t head_dim, int kv, int n_heads, const int64_t* pages,
                 int n_keys, const char** rows) const {
    const Format format = shape.pool_format;
    const int64_t page = page_bytes(format, shape.n_kv_heads, static_cast<int32_t>(head_dim));
    const int64_t head = kv * head_dim;
    const char* base = static_cast<const char*>(pool);
    if (format == Format::i8) {
      const int64_t scales = page_numbers(format, shape.n_kv_heads, static_cast<int32_t>(head_dim));
      Element* to = static_cast<Element*>(scratch.numbers);
      for (int i = 0; i < n_keys; ++i) {
        const char* from = base + pages[i] * page;
        rows[i] = reinterpret_cast<const char*>(to);
        for (int h = 0; h < n_heads; ++h, to += head_dim) {
          float scale;
          std::memcpy(&scale, from + scales + 4 * (kv + h), 4);
          Math::widen_numbers(reinterpret_cast<const int8_t*>(from) + head + h * head_dim, head_dim,
                              scale, to);
        }
      }
    } else {
      base += head * static_cast<int64_t>(sizeof(Element));
      for (int i = 0; i < n_keys; ++i) rows[i] = base + pages[i] * page;
    }
    for (int i = n_keys; i % 16; ++i) rows[i] = rows[n_keys - 1];
  }

  // Of a tile of an item, all that is read of its pages.
  Fetcher fetch(const Item& item, int at) const {
    const int left = item.end - at, n = left < kTileKeys ? left : kTileKeys;
    const auto pool = [&](const void* base, int32_t head_dim) {
      const int64_t head = bytes_of(shape.pool_format) * head_dim;
      const int64_t page = page_bytes(shape.pool_format, shape.n_kv_heads, head_dim);
      const bool is_whole = item.kv_end - item.kv_begin == shape.n_kv_heads;  // with its scales
      return Fetcher::Pool{static_cast<const char*>(base) + item.kv_begin * head, page,
                           is_whole ? page : head * (item.kv_end - item.kv_begin)};
    };
    return {pool(call.k_pool, shape.head_dim), pool(call.v_pool, shape.v_head_dim), item.pages + at,
            n};
  }

  void pack(int kv, int at, int n_keys) {
    const char* rows[kTileKeys];
    list_rows(call.k_pool, shape.head_dim, kv, 1, item.pages + at, n_keys, rows);
    Math::pack_keys(rows, n_keys, shape.head_dim, scratch.keys, fetcher);
    list_rows(call.v_pool, shape.v_head_dim, kv, 1, item.pages + at, n_keys, rows);
    Math::pack_values(rows, n_keys, shape.v_head_dim, scratch.values, fetcher);
  }

  // Whether every query sees the whole tile.
  bool is_whole(int at, int n_keys) const {
    for (int i = 0; i < item.n_queries; ++i) {
      const Seen s = seen(queries[i], shape.window, at, n_keys);
      if (s.from > 0 || s.end < n_keys) return false;
    }
    return true;
  }

  // Weights of zero would make NaN of values that are not finite: where some query does not see
  // some key, such tiles are taken by rows.
  bool is_by_rows(int at, int n_keys) const {
    if (is_whole(at, n_keys)) return false;
    const int64_t n = (n_keys + Math::per_dword - 1) / Math::per_dword;
    return !Math::is_finite(scratch.values, n * padded(shape.v_head_dim));
  }

  // Rows [row, row + n) of a KV head, whose first row is `first`, over the packed tile.
  void block(int first, int row, int n, int at, int n_keys, bool by_rows) {
    Seen sees[kBlockRows], any{n_keys, 0};
    for (int i = 0; i < n; ++i) {
      sees[i] = seen(queries[(row + i) / call.group], shape.window, at, n_keys);
      if (sees[i].from < any.from) any.from = sees[i].from;
      if (sees[i].end > any.end) any.end = sees[i].end;
    }
    if (any.from >= any.end) return;
    const int64_t n_dwords = dwords<Math>(shape), width = padded(shape.v_head_dim);
    kProducts<Math>[n](scratch.queries + (first + row) * n_dwords, n_dwords, scratch.keys, kTileKeys,
                       0, n_dwords, nullptr, scratch.scores, kTileKeys, padded(any.end), fetcher);
    float factors[kBlockRows];
    constexpr int64_t weights = kTileKeys / Math::per_dword;
    for (int i = 0; i < n; ++i)
      factors[i] = weigh<Math>(scratch.scores + i * kTileKeys, sees[i].from, sees[i].end, shape,
                               state(first + row + i), scratch.weights + i * weights);
    constexpr int per = Math::per_dword;
    if (by_rows) return values_by_rows(first + row, n, sees, factors);
    kProducts<Math>[n](scratch.weights, weights, scratch.values, width, any.from / per,
                       (any.end + per - 1) / per, factors, state(first + row).values,
                       state_floats(shape), width, fetcher);
  }

  void values_by_rows(int row, int n, const Seen* sees, const float* factors) {
    const int64_t width = padded(shape.v_head_dim);
    constexpr int per = Math::per_dword;
    for (int i = 0; i < n; ++i) {
      if (sees[i].from >= sees[i].end) continue;
      Math::only_keys(scratch.values, sees[i].from, sees[i].end, width, scratch.some);
      kProducts<Math>[1](scratch.weights + i * (kTileKeys / per), 0, scratch.some, width,
                         sees[i].from / per, (sees[i].end + per - 1) / per, factors + i,
                         state(row + i).values, 0, width, fetcher);
    }
  }

  void tile(int at, int n_keys) {
    const int n_kv = item.kv_end - item.kv_begin;
#if defined(__AVX512F__)
    if constexpr (Math::has_few)
      if (rows_of_kv <= kFewRows && is_whole(at, n_keys)) return few(at, n_keys);
#endif
    const int n_blocks = (rows_of_kv + kBlockRows - 1) / kBlockRows;
    for (int kv = 0; kv < n_kv; ++kv) {
      pack(item.kv_begin + kv, at, n_keys);
      const bool by_rows = is_by_rows(at, n_keys);
      for (int i = 0; i < n_blocks; ++i) {  // blocks of like sizes
        const int row = rows_of_kv * i / n_blocks, next = rows_of_kv * (i + 1) / n_blocks;
        block(kv * rows_of_kv, row, next - row, at, n_keys, by_rows);
      }
    }
  }

#if defined(__AVX512F__)
  // A tile that few queries see whole; see attention_few.h.
  void few(int at, int n_keys) {
    constexpr int per = Math::per_dword;
    const int n_kv = item.kv_end - item.kv_begin, n_rows = n_kv * rows_of_kv;
    const int64_t n_dwords = dwords<Math>(shape);
    const char* rows[16];
    const auto list = [&](const void* pool, int64_t head_dim, int key) {
      const int n = n_keys - key < 16 ? n_keys - key : 16;
      list_rows(pool, head_dim, item.kv_begin, n_kv, item.pages + at + key, n, rows);
      return n;
    };
    for (int key = 0; key < n_keys; key += 16) {
      list(call.k_pool, shape.head_dim, key);
      for (int kv = 0; kv < n_kv; ++kv)
        kFewScores<Math>[rows_of_kv](rows, 4 * n_dwords * kv, n_dwords,
                                     scratch.few_queries + kv * kFewRows * n_dwords,
                                     scratch.scores + kv * rows_of_kv * kTileKeys + key, fetcher);
    }
    for (int row = 0; row < n_rows; ++row)
      scratch.factors[row] = weigh<Math>(scratch.scores + row * kTileKeys, 0, n_keys, shape,
                                         state(row), scratch.weights + row * (kTileKeys / per));
    for (int key = 0; key < n_keys; key += 16) {
      const int n = list(call.v_pool, shape.v_head_dim, key);
      for (int kv = 0; kv < n_kv; ++kv)
        for (int row = 0; row < rows_of_kv; row += kFewBlock) {
          const int first = kv * rows_of_kv + row;
          const int n_block = rows_of_kv - row < kFewBlock ? rows_of_kv - row : kFewBlock;
          few_values_of<Math>(n_block, rows, n, shape.v_head_dim, kv,
                              scratch.weights + (first * kTileKeys + key) / per, kTileKeys / per,
                              scratch.factors + first, state(first).values, state_floats(shape),
                              fetcher);
        }
      for (int row = 0; key == 0 && row < n_rows; ++row) scratch.factors[row] = 1.0f;
    }
  }
#endif

  void all() {
    begin();
    bool has_totals = false;
    for (int at = item.begin; at < item.end; at += kTileKeys) {
      if (at > item.begin && at % call.segment == 0) {
        next_segment(has_totals);
        has_totals = true;
      }
      const int next_at = at + kTileKeys;
      fetcher = next_at < item.end ? fetch(item, next_at)
                : next             ? fetch(*next, next->begin)
                                   : Fetcher();
      tile(at, item.end - at < kTileKeys ? item.end - at : kTileKeys);
    }
    end(has_totals);
  }
};

template <class Math>
void run_item(const AttendCall& call, const Item& item, const Item* next, float* memory) {
  Run<Math>(call, item, next, memory).all();
}

template <class Math>
void run_merge(const AttendCall& call, const Merge& merge, float* memory) {
  const State total = state_at(memory, 0, call.shape);
  for (int head = 0; head < call.shape.n_heads; ++head) {
    clear(total, call.shape);
    for (int i = 0; i < merge.n_slots; ++i) {
      const int64_t at = int64_t{merge.slot + i} * call.shape.n_heads + head;
      merge_states<Math>(total, state_at(call.states, at, call.shape), call.shape);
    }
    finish<Math>(total, call.shape, head, Run<Math>::output(call, merge.token, head));
  }
}

template <class Math>
constexpr AttentionKernel kernel_of() {
  return {scratch_floats<Math>, run_item<Math>, run_merge<Math>};
}

}  // namespace
}  // namespace sgc
