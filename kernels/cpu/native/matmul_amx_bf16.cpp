// bf16 by bf16 with tiles: a step multiplies 32 rows of 32 inputs with 32 columns. It takes what is
// packed for AVX512-BF16, whose pairs are what a tile of weights is made of. The order of sums is
// the processor's own.
//
// Never run on the machines at hand: checked with the instructions written out in C++ only. It is
// used where `fastest` is asked for, after the self-check at load.
#include "matmul_kernel.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define SGC_LANES 16
#include "matmul_blocks.h"

namespace sgc {
namespace {

constexpr int kTileRows = 16;
constexpr int64_t kTileInputs = kPairsUnit;
constexpr int64_t kTileBytes = 64;           // of a tile's row
constexpr int64_t kWeightsStride = 128;      // of a panel's pairs: two tiles side by side
constexpr int64_t kTilesStep = kWeightsStride * kTileRows;

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// The activations of a task in tiles of 16 rows. What does not fill its tile is copied, with zeros.
class Rows {
 public:
  explicit Rows(const Task& task) : x_(static_cast<const char*>(task.x)) {
    stride_bytes_ = task.x_stride * 2;
    n_whole_ = task.n_in % kTileInputs == 0 ? task.n_rows / kTileRows : 0;
    const int64_t n_tiles = (task.n_rows + kTileRows - 1) / kTileRows;
    padded_bytes_ = (task.n_in + kTileInputs - 1) / kTileInputs * kTileInputs * 2;
    if (n_whole_ == n_tiles) return;
    const int64_t first = n_whole_ * kTileRows;
    copy_ = thread_scratch((n_tiles - n_whole_) * kTileRows * padded_bytes_);
    for (int64_t row = first; row < n_tiles * kTileRows; ++row) {
      const int64_t n = row < task.n_rows ? task.n_in * 2 : 0;
      char* to = copy_ + (row - first) * padded_bytes_;
      std::memcpy(to, x_ + (n > 0 ? row * stride_bytes_ : 0), static_cast<size_t>(n));
      std::memset(to + n, 0, static_cast<size_t>(padded_bytes_ - n));
    }
  }

  const char* tile(int64_t index) const {
    return index < n_whole_ ? x_ + index * kTileRows * stride_bytes_
                            : copy_ + (index - n_whole_) * kTileRows * padded_bytes_;
  }
  int64_t stride(int64_t index) const { return index < n_whole_ ? stride_bytes_ : padded_bytes_; }
  int64_t n_steps() const { return padded_bytes_ / kTileBytes; }

 private:
  const char* x_;
  char* copy_ = nullptr;
  int64_t stride_bytes_, padded_bytes_, n_whole_;
};

SGC_INLINE void ask_for(Ahead& ahead) {
  for (int64_t at = 0; at < ahead.step; at += 64) _mm_prefetch(ahead.at + at, _MM_HINT_T0);
  ahead.at += ahead.step;
}

// The compiler does not know that loading and storing tiles reads and writes memory.
SGC_INLINE void memory_is_seen() { asm volatile("" ::: "memory"); }

// Tiles 0 to 3 are sums, two of rows by two of columns; 4 and 5 rows; 6 and 7 weights.
void sums_of_two(const Rows& x, int64_t tile, const char* panel, Ahead ahead, float* sums) {
  const char *x0 = x.tile(tile), *x1 = x.tile(tile + 1);
  const int64_t stride0 = x.stride(tile), stride1 = x.stride(tile + 1);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t i = 0; i < x.n_steps(); ++i, panel += kTilesStep) {
    ask_for(ahead);
    _tile_loadd(6, panel, kWeightsStride);
    _tile_loadd(7, panel + kTileBytes, kWeightsStride);
    _tile_loadd(4, x0 + i * kTileBytes, stride0);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, x1 + i * kTileBytes, stride1);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  constexpr int64_t kSumsStride = kColumns * 4;
  _tile_stored(0, sums, kSumsStride);
  _tile_stored(1, sums + kLanes, kSumsStride);
  _tile_stored(2, sums + kTileRows * kColumns, kSumsStride);
  _tile_stored(3, sums + kTileRows * kColumns + kLanes, kSumsStride);
}

void sums_of_one(const Rows& x, int64_t tile, const char* panel, Ahead ahead, float* sums) {
  const char* x0 = x.tile(tile);
  const int64_t stride0 = x.stride(tile);
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t i = 0; i < x.n_steps(); ++i, panel += kTilesStep) {
    ask_for(ahead);
    _tile_loadd(4, x0 + i * kTileBytes, stride0);
    _tile_loadd(6, panel, kWeightsStride);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, panel + kTileBytes, kWeightsStride);
    _tile_dpbf16ps(1, 4, 7);
  }
  _tile_stored(0, sums, kColumns * 4);
  _tile_stored(1, sums + kLanes, kColumns * 4);
}

void multiply_tiles(const Task& task) {
  constexpr int kGroup = 2 * kTileRows;
  alignas(64) float sums[kGroup * kColumns];
  const Rows x(task);
  const int64_t n_groups = (task.n_rows + kGroup - 1) / kGroup;
  static constexpr TileConfig config;  // the compiler believes that only its first bytes are read
  _tile_loadconfig(&config);
  for (int64_t i = 0; i < task.n_panels; ++i) {
    const char* panel = panel_of(task, i);
    for (int64_t group = 0; group < n_groups; ++group) {
      const int64_t first = group * kGroup, left = task.n_rows - first;
      const Ahead ahead = ahead_of(task, i, kTilesStep, group, n_groups);
      memory_is_seen();
      (left > kTileRows ? sums_of_two : sums_of_one)(x, 2 * group, panel, ahead, sums);
      memory_is_seen();
      finish(sums, static_cast<int>(left < kGroup ? left : kGroup), target_of(task, i, first),
             task);
    }
  }
  _tile_release();
}

}  // namespace

const Kernel* amx_bf16_kernel() {
  static constexpr Kernel kernel{kColumns, 2 * kTileRows, Layout::pairs, Format::bf16,
                                 multiply_tiles};
  return &kernel;
}

}  // namespace sgc

#else

namespace sgc {
const Kernel* amx_bf16_kernel() { return nullptr; }
}  // namespace sgc

#endif
