#include "numbers.h"

#include <sys/mman.h>

#include <new>

namespace sgc {
namespace {

constexpr int64_t kHugePage = int64_t{1} << 21;
constexpr int64_t kLine = 64;

int64_t rounded(int64_t n_bytes) {
  const int64_t unit = n_bytes >= kHugePage ? kHugePage : kLine;
  if (n_bytes < 0 || n_bytes > INT64_MAX - unit) throw std::bad_alloc();
  return (n_bytes + unit - 1) / unit * unit;
}

}  // namespace

// Large memory is mapped by itself: it is zero as it comes, and a page is in memory only from the
// first write on.
void* allocate(int64_t n_bytes) {
  const int64_t size = rounded(n_bytes > 0 ? n_bytes : 1);
  if (size < kHugePage) {
    void* memory = ::operator new(static_cast<size_t>(size), std::align_val_t(kLine));
    std::memset(memory, 0, static_cast<size_t>(size));
    return memory;
  }
  // A mapping begins anywhere: ask for one huge page more, and give back what surrounds ours.
  if (size > INT64_MAX - kHugePage) throw std::bad_alloc();
  void* mapped = mmap(nullptr, static_cast<size_t>(size + kHugePage), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  char* start = static_cast<char*>(mapped);
  const auto beyond = static_cast<int64_t>(reinterpret_cast<uintptr_t>(start) % kHugePage);
  const int64_t before = beyond == 0 ? 0 : kHugePage - beyond;
  if (before > 0) munmap(start, static_cast<size_t>(before));
  if (before < kHugePage) {
    munmap(start + before + size, static_cast<size_t>(kHugePage - before));
  }
#ifdef MADV_HUGEPAGE
  madvise(start + before, static_cast<size_t>(size), MADV_HUGEPAGE);  // advice: may be refused
#endif
  return start + before;
}

void release(void* memory, int64_t n_bytes) {
  if (memory == nullptr) return;
  const int64_t size = rounded(n_bytes > 0 ? n_bytes : 1);
  if (size < kHugePage) {
    ::operator delete(memory, std::align_val_t(kLine));
  } else {
    munmap(memory, static_cast<size_t>(size));
  }
}

}  // namespace sgc
