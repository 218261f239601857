// Fetches the pages of the next tile while this one is computed. Pages are scattered, so that the
// processor cannot foresee them, and it holds few outstanding lines: they are asked for page by page,
// between the steps of the arithmetic, and into the second cache, which waits for more of them.
#pragma once

#include <cstdint>

namespace sgc {
namespace {

class Fetcher {
 public:
  // base: of the first page's part that is read.
  struct Pool {
    const char* base = nullptr;
    int64_t page_bytes = 0, n_lines = 0;

    Pool() = default;
    Pool(const char* base, int64_t page_bytes, int64_t n_bytes)
        : base(base), page_bytes(page_bytes), n_lines((n_bytes + kLine - 1) / kLine) {
      const bool is_aligned = reinterpret_cast<uintptr_t>(base) % kLine + page_bytes % kLine == 0;
      if (!is_aligned) n_lines = (n_bytes + kLine - 2) / kLine + 1;
    }
  };

  Fetcher() = default;
  Fetcher(Pool keys, Pool values, const int64_t* pages, int64_t n)
      : now_(keys), then_(values), page_(pages), end_(pages + n) {}

  // Asks for the next page's keys or values.
  [[gnu::always_inline]] void step() {
    if (page_ != end_) fetch();
  }

 private:
  static constexpr int64_t kLine = 64;

  void fetch() {
    const char* line = now_.base + *page_ * now_.page_bytes;
    for (int64_t i = 0; i < now_.n_lines; ++i) __builtin_prefetch(line + kLine * i, 0, 2);
    const Pool pool = now_;
    now_ = then_;
    then_ = pool;
    page_ += is_value_;
    is_value_ = !is_value_;
  }

  Pool now_, then_;
  const int64_t* page_ = nullptr;
  const int64_t* end_ = nullptr;
  bool is_value_ = false;
};

}  // namespace
}  // namespace sgc
