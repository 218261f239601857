// Products: which kernel, and how the work is split.
#include "matmul.h"

#include <algorithm>
#include <stdexcept>

#include "isa.h"
#include "matmul_kernel.h"
#include "matmul_memory.h"
#include "matmul_pack.h"

namespace sgc {
namespace {

// A row block's activations are read once for each panel: they are to stay in the second-level
// cache, beside a panel.
constexpr int64_t kBlockBytes = int64_t{384} << 10;
constexpr int64_t kItemsPerThread = 6;  // so that threads end at about the same time
// An item is to be worth the few hundred nanoseconds that taking it costs: bytes of weights times
// rows, at least one row's 32 KB.
constexpr int64_t kItemWork = int64_t{32} << 10;
constexpr int64_t kFewRows = 4;  // below it, tiles gain nothing

// Where activations are fp32, or too long for sums of bytes, weights are widened in registers.
const Kernel* kernel_of(Isa isa, Format format, Format packed_as, int64_t n_in) {
  switch (isa) {
    case Isa::amx_bf16:
    case Isa::avx512_bf16:
      if (format == Format::bf16 && packed_as == Format::bf16) return avx512_bf16_kernel();
      if (format == Format::bf16 && n_in <= 4 * kMostQuads) return avx512_bf16_i8_kernel();
      return avx512_kernel(packed_as);
    case Isa::avx512:
      return avx512_kernel(packed_as);
    case Isa::avx2:
      return avx2_kernel(packed_as);
    case Isa::plain:
    case Isa::none:
      break;
  }
  return plain_kernel(packed_as);
}

int64_t divided_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Blocks of rows by blocks of panels. Items of the same panels follow each other, so that all
// threads read the same weights at about the same time.
struct Split {
  int64_t n_rows, n_panels, n_threads, n_row_blocks, panels_per_item, n_items;

  Split(int64_t n_rows, const Sizes& sizes, const Kernel& kernel, int64_t n_threads)
      : n_rows(n_rows), n_panels(sizes.n_panels), n_threads(n_threads) {
    const int64_t row_bytes = sizes.n_in * bytes_of(kernel.x_format);
    const int64_t fitting = kBlockBytes / row_bytes / kernel.rows * kernel.rows;
    n_row_blocks = divided_up(n_rows, std::max<int64_t>(fitting, 2 * kernel.rows));
    const int64_t rows = divided_up(n_rows, n_row_blocks);
    const int64_t balanced = n_panels * n_row_blocks / (kItemsPerThread * n_threads);
    const int64_t least = divided_up(kItemWork, sizes.panel_bytes * rows);
    panels_per_item = std::min(std::max({balanced, least, int64_t{1}}), n_panels);
    n_items = n_row_blocks * divided_up(n_panels, panels_per_item);
  }

  int64_t first_row(int64_t item) const { return item % n_row_blocks * n_rows / n_row_blocks; }
  int64_t end_row(int64_t item) const {
    return (item % n_row_blocks + 1) * n_rows / n_row_blocks;
  }
  int64_t first_panel(int64_t item) const { return item / n_row_blocks * panels_per_item; }
  // Of the item that the same thread begins next, if all take equally long.
  int64_t next_panel(int64_t item) const {
    return first_panel(std::min(item + n_threads, n_items - 1));
  }
  int64_t end_panel(int64_t item) const {
    return std::min(first_panel(item) + panels_per_item, n_panels);
  }
};

class PackedWeights final : public Packed {
 public:
  PackedWeights(Format format, const Kernel& kernel, const Sizes& sizes)
      : format_(format),
        kernel_(kernel),
        sizes_(sizes),
        panels_(allocate_weights(sizes.n_panels * sizes.panel_bytes)),
        biases_(sizes.n_panels * kernel.columns * 4) {}

  int64_t n_in() const override { return sizes_.n_in; }
  int64_t n_out() const override { return sizes_.n_out; }
  int64_t bytes() const override { return sizes_.n_panels * sizes_.panel_bytes + biases_.bytes(); }

  char* panels() { return panels_.get(); }
  float* biases() { return biases_.as<float>(); }

  void multiply(const void* x, int64_t x_stride, int64_t n_rows, Epilogue epilogue, float scale,
                void* out, int64_t out_stride, bool fastest, Threads& threads) const override {
    check(x, x_stride, n_rows, epilogue, out, out_stride);
    if (n_rows == 0) return;
    const bool is_wide = epilogue == Epilogue::store_f32 || epilogue == Epilogue::add;
    const int64_t out_bytes = is_wide ? 4 : bytes_of(format_);
    const int64_t outputs = is_paired(epilogue) ? kernel_.columns / 2 : kernel_.columns;
    const Kernel& kernel = taken(n_rows, fastest);
    const Split split(n_rows, sizes_, kernel, threads.count());
    const Rows rows = rows_for(kernel, x, x_stride, n_rows, threads);
    threads.run(split.n_items, [&](int64_t item, int) {
      const int64_t row = split.first_row(item), panel = split.first_panel(item);
      kernel.multiply({
          .x = rows.data + row * rows.stride_bytes,
          .x_stride = rows.stride,
          .n_rows = split.end_row(item) - row,
          .n_in = sizes_.n_in,
          .panels = panels_.get() + panel * sizes_.panel_bytes,
          .panel_bytes = sizes_.panel_bytes,
          .n_panels = split.end_panel(item) - panel,
          .after = panels_.get() + split.next_panel(item) * sizes_.panel_bytes,
          .biases = biases_.as<float>() + panel * kernel_.columns,
          .epilogue = epilogue,
          .scale = scale,
          .out = static_cast<char*>(out) + (row * out_stride + panel * outputs) * out_bytes,
          .out_stride = out_stride,
          .n_columns = n_written() - panel * outputs,
          .out_format = format_,
      });
    });
  }

 private:
  int64_t n_written() const { return sizes_.interleaved ? sizes_.n_out / 2 : sizes_.n_out; }

  const Kernel& taken(int64_t n_rows, bool fastest) const {
    const bool takes_tiles = fastest && n_rows >= kFewRows && kernel_.layout == Layout::pairs &&
                             best() == Isa::amx_bf16;
    return takes_tiles ? *amx_bf16_kernel() : kernel_;
  }

  void check(const void* x, int64_t x_stride, int64_t n_rows, Epilogue epilogue, const void* out,
             int64_t out_stride) const {
    if (n_rows < 0) throw std::invalid_argument("n_rows is negative");
    if (epilogue < Epilogue::store || epilogue > Epilogue::relu) {
      throw std::invalid_argument("an unknown epilogue");
    }
    if (is_paired(epilogue) != sizes_.interleaved) {
      throw std::invalid_argument("pairs are for weights that are interleaved, and they for pairs");
    }
    if (n_rows == 0) return;
    if (x == nullptr || out == nullptr) throw std::invalid_argument("no x, or no out");
    if (n_rows > 1 && (x_stride < sizes_.n_in || out_stride < n_written())) {
      throw std::invalid_argument("a stride is shorter than a row");
    }
    const int64_t widest = std::max({x_stride, sizes_.n_in, out_stride});
    int64_t numbers, bytes;
    if (__builtin_mul_overflow(n_rows, widest, &numbers) ||
        __builtin_mul_overflow(numbers, 4, &bytes)) {
      throw std::invalid_argument("too many rows");
    }
  }

  // Rows as a kernel takes them. stride: in its numbers.
  struct Rows {
    const char* data;
    int64_t stride, stride_bytes;
  };

  Rows rows_for(const Kernel& kernel, const void* x, int64_t stride, int64_t n_rows,
                Threads& threads) const {
    const RowForm* form = kernel.row_form;
    if (form == nullptr && kernel.x_format == format_) {
      return {static_cast<const char*>(x), stride, stride * bytes_of(format_)};
    }
    constexpr int64_t kRowsAnItem = 8;
    const int64_t n_in = sizes_.n_in, bytes = form != nullptr ? form->bytes(n_in) : n_in * 4;
    const auto* from = static_cast<const bf16*>(x);
    char* to = thread_scratch(n_rows * bytes);
    threads.run(divided_up(n_rows, kRowsAnItem), [&](int64_t item, int) {
      const int64_t end = std::min((item + 1) * kRowsAnItem, n_rows);
      for (int64_t row = item * kRowsAnItem; row < end; ++row) {
        (form != nullptr ? form->make : widen)(from + row * stride, n_in, to + row * bytes);
      }
    });
    return {to, form != nullptr ? bytes : n_in, bytes};
  }

  static void widen(const bf16* x, int64_t n_in, char* row) {
    float* to = reinterpret_cast<float*>(row);
    for (int64_t k = 0; k < n_in; ++k) to[k] = to_float(x[k]);
  }

  Format format_;
  const Kernel& kernel_;
  Sizes sizes_;
  std::shared_ptr<char> panels_;
  Memory biases_;
};

}  // namespace

std::unique_ptr<Packed> Packed::make(Format format, Format packed_as, const Matrix* weights,
                                     int n_weights, int64_t n_in, const float* biases,
                                     bool interleaved, Threads& threads) {
  if (format != Format::f32 && format != Format::bf16) {
    throw std::invalid_argument("an unknown format");
  }
  if (packed_as != format && packed_as != Format::i8) {
    throw std::invalid_argument("weights are packed as they are, or in eight bits");
  }
  const Kernel& kernel = *kernel_of(best(), format, packed_as, n_in);
  const Sizes sizes = sized(packed_as, weights, n_weights, n_in, interleaved, kernel);
  auto packed = std::make_unique<PackedWeights>(format, kernel, sizes);
  pack_weights(format, packed_as, weights, sizes, kernel, packed->panels(), threads);
  pack_biases(biases, sizes, kernel, packed->biases());
  return packed;
}

}  // namespace sgc
