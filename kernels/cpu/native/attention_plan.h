// A step's attention as items of work. `attention_share.cpp` finds what rows share,
// `attention_plan.cpp` cuts it into items, `attention.cpp` runs them.
#pragma once

#include <vector>

#include "attend.h"
#include "attention_item.h"

namespace sgc {

// One row of the batch. Contexts are shorter than 2^31.
struct Row {
  const int64_t* pages;
  int32_t first_token, n_new, n_pages;
  int32_t first_seen;  // the first position that any of its tokens sees

  int32_t position(int32_t i) const { return n_pages - n_new + i; }
};

// Positions [begin, end) of the context that the members share, or of one row's own.
struct Piece {
  int32_t begin, end;
  int32_t first_member, n_members;  // into Pieces::members: indices of rows
};

struct Pieces {
  std::vector<Piece> pieces;  // what is nearer to the start comes first
  std::vector<int32_t> members;
};

// grain: positions at which a shared prefix may end are multiples of it.
Pieces share(const std::vector<Row>& rows, int32_t group, int32_t grain);

class AttentionPlan {
 public:
  HeadShape shape;  // its sinks, scale and cap are not used
  int32_t segment;
  std::vector<Query> queries;
  std::vector<Item> items;           // by level
  std::vector<int32_t> level_ends;   // into items
  std::vector<Merge> merges;
  int32_t n_slots = 0;
  int64_t n_states = 0;  // of the largest item
};

}  // namespace sgc
