// Finds leading pages that rows share: a tree, walked from the first page on. Rows that agree up to
// a page form a piece if that saves enough reads; then those that go on alike are looked at again.
#include <algorithm>

#include "attention_plan.h"

namespace sgc {
namespace {

// From about here a piece is worth a level of its own, with states kept and loaded again.
constexpr int32_t kMinKeys = 32;
constexpr int64_t kMinSavedReads = 96;
// Rows with more queries (tokens by heads of a group) use what they read often enough alone.
constexpr int64_t kMaxQueries = 64;

class Sharing {
 public:
  Sharing(const std::vector<Row>& rows, int32_t grain) : rows_(rows), grain_(grain) {}

  Pieces take(std::vector<int32_t> alike) {
    split(alike.data(), alike.data() + alike.size(), 0, 0);
    return std::move(found_);
  }

  void own(int32_t row, int32_t begin) {
    if (begin < rows_[row].n_pages) add(&row, 1, begin, rows_[row].n_pages);
  }

 private:
  void add(const int32_t* members, int64_t n, int32_t begin, int32_t end) {
    found_.pieces.push_back({begin, end, static_cast<int32_t>(found_.members.size()),
                             static_cast<int32_t>(n)});
    found_.members.insert(found_.members.end(), members, members + n);
  }

  // Rows [from, to) agree on their first `matched` pages; pieces cover the first `done`.
  void visit(int32_t* from, int32_t* to, int32_t matched, int32_t done) {
    if (to - from == 1) return own(*from, done);
    const Row& first = rows_[*from];
    int32_t common = first.n_pages, first_seen = first.first_seen;
    for (const int32_t* row = from + 1; row < to; ++row) {
      const Row& other = rows_[*row];
      common = std::min(common, other.n_pages);
      first_seen = std::min(first_seen, other.first_seen);
      const int64_t* end = first.pages + common;
      const int64_t* differs =
          std::mismatch(first.pages + matched, end, other.pages + matched).first;
      common = static_cast<int32_t>(differs - first.pages);
    }
    const int32_t begin = std::max(done, first_seen / grain_ * grain_);
    const int32_t end = common / grain_ * grain_;
    if (end - begin >= kMinKeys && (to - from - 1) * int64_t{end - begin} >= kMinSavedReads) {
      add(from, to - from, begin, end);
      done = end;
    }
    split(from, to, common, done);
  }

  // Rows [from, to) agree on their first `matched` pages: those that also agree on the next one
  // are visited together.
  void split(int32_t* from, int32_t* to, int32_t matched, int32_t done) {
    const auto next = [&](int32_t row) {
      return matched < rows_[row].n_pages ? rows_[row].pages[matched] : -1;
    };
    const auto is_before = [&](int32_t a, int32_t b) {
      const int64_t x = next(a), y = next(b);
      return x != y ? x < y : a < b;
    };
    if (!std::is_sorted(from, to, is_before)) std::sort(from, to, is_before);
    while (from < to) {
      const int64_t page = next(*from);
      if (page < 0) {  // the row ends here
        own(*from++, done);
        continue;
      }
      int32_t* end = from + 1;
      while (end < to && next(*end) == page) ++end;
      visit(from, end, matched, done);
      from = end;
    }
  }

  const std::vector<Row>& rows_;
  const int32_t grain_;
  Pieces found_;
};

}  // namespace

Pieces share(const std::vector<Row>& rows, int32_t group, int32_t grain) {
  Sharing sharing(rows, grain);
  std::vector<int32_t> alike;
  for (int32_t row = 0; row < static_cast<int32_t>(rows.size()); ++row) {
    if (int64_t{rows[row].n_new} * group <= kMaxQueries)
      alike.push_back(row);
    else
      sharing.own(row, 0);
  }
  return sharing.take(std::move(alike));
}

}  // namespace sgc
