#include "matmul_memory.h"

#include <mutex>

#include "matmul_kernel.h"

namespace sgc {
namespace {

// What of a chunk is not used is not in memory either.
constexpr int64_t kChunk = int64_t{64} << 20;
constexpr int64_t kUnit = 128;  // two lines, which processors fetch together

struct Chunk {
  std::weak_ptr<Memory> memory;  // it lives as long as a weight in it
  int64_t used = 0;
};

}  // namespace

std::shared_ptr<char> allocate_weights(int64_t n_bytes) {
  static std::mutex mutex;
  static Chunk current;
  if (n_bytes > kChunk / 2) {
    const auto own = std::make_shared<Memory>(n_bytes, HugePages::gathered);
    return {own, own->as<char>()};
  }
  const int64_t size = (n_bytes + kUnit - 1) / kUnit * kUnit;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Memory> memory = current.memory.lock();
  if (memory == nullptr || current.used + size > kChunk) {
    memory = std::make_shared<Memory>(kChunk, HugePages::gathered);
    current = {memory, 0};
  }
  char* at = memory->as<char>() + current.used;
  current.used += size;
  return {memory, at};
}

char* thread_scratch(int64_t n_bytes) {
  thread_local std::unique_ptr<Memory> memory;
  if (memory == nullptr || memory->bytes() < n_bytes) {
    memory.reset();
    memory = std::make_unique<Memory>(n_bytes);
  }
  return memory->as<char>();
}

}  // namespace sgc
