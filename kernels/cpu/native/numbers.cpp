#include "numbers.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
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

// The system has small pages at hand. Huge ones it must often find and clear first, on a virtual
// machine the host too, at up to three seconds for a GB. Memory that is written as a model loads
// comes in small pages, therefore, and is gathered into huge ones between the first steps.
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // since Linux 6.1
#endif

struct Gathered {
  std::mutex mutex;
  std::map<const char*, int64_t> sizes;  // by where it begins
  const char* done = nullptr;            // what ends before it was gathered
};

Gathered& gathered() {
  static Gathered* const all = new Gathered;  // never destroyed: memory is released until the end
  return *all;
}

bool can_gather() {
#ifdef __linux__
  static const bool is_known = madvise(nullptr, 0, MADV_COLLAPSE) == 0;
  return is_known;
#else
  return false;
#endif
}

// The first whole huge page that ends after `done`; null: there is none.
char* next_page(const Gathered& all, const char* done) {
  auto at = all.sizes.upper_bound(done);
  if (at != all.sizes.begin() && std::prev(at)->first + std::prev(at)->second > done) --at;
  for (; at != all.sizes.end(); ++at) {
    const char* page = std::max(at->first, done);
    if (page + kHugePage <= at->first + at->second) return const_cast<char*>(page);
  }
  return nullptr;
}

}  // namespace

// Large memory is mapped by itself: it is zero as it comes, and a page is in memory only from the
// first write on.
void* allocate(int64_t n_bytes, HugePages pages) {
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
  if (pages == HugePages::gathered && can_gather()) {
    Gathered& all = gathered();
    const std::lock_guard lock(all.mutex);
    all.sizes[start + before] = size;
    all.done = nullptr;  // it may lie before
    return start + before;
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
    return;
  }
  Gathered& all = gathered();
  const std::lock_guard lock(all.mutex);
  all.sizes.erase(static_cast<char*>(memory));
  munmap(memory, static_cast<size_t>(size));
}

bool gather_pages(int64_t n) {
  Gathered& all = gathered();
  const std::lock_guard lock(all.mutex);
  for (; n > 0; --n) {
    char* page = next_page(all, all.done);
    if (page == nullptr) return false;
    madvise(page, kHugePage, MADV_COLLAPSE);  // may be refused, if nothing of it is in memory
    all.done = page + kHugePage;
  }
  return next_page(all, all.done) != nullptr;
}

}  // namespace sgc
