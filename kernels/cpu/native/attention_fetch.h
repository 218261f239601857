// Fetches the pages of the next tile while this one is computed. Pages are scattered, so that the
// processor cannot foresee them, and it holds few outstanding lines: they are asked for one by one,
// between the steps of the arithmetic, and into the second cache, which waits for more of them.
#pragma once

#include <cstdint>

namespace sgc {
namespace {

class Fetcher {
 public:
  struct Pool {
    const char* base;  // of the first page's part that is read
    int64_t page_bytes, n_bytes;
  };

  Fetcher() = default;
  Fetcher(Pool keys, Pool values, const int64_t* pages, int64_t n)
      : keys_(keys), values_(values), page_(pages), end_(pages + n) {}

  // Asks for the next line.
  [[gnu::always_inline]] void step() {
    if (line_ >= line_end_) {
      if (page_ == end_) return;
      advance();
    }
    __builtin_prefetch(line_, 0, 2);
    line_ += kLine;
  }

  void steps(int n) {
    while (n-- > 0) step();
  }

  void rest() {
    while (line_ < line_end_ || page_ != end_) step();
  }

 private:
  static constexpr int64_t kLine = 64;

  void advance() {
    const Pool& pool = is_value_ ? values_ : keys_;
    const char* from = pool.base + *page_ * pool.page_bytes;
    line_ = from - (reinterpret_cast<uintptr_t>(from) & (kLine - 1));
    line_end_ = from + pool.n_bytes;
    page_ += is_value_;
    is_value_ = !is_value_;
  }

  Pool keys_ = {}, values_ = {};
  const int64_t* page_ = nullptr;
  const int64_t* end_ = nullptr;
  const char* line_ = nullptr;
  const char* line_end_ = nullptr;
  bool is_value_ = false;
};

}  // namespace
}  // namespace sgc
