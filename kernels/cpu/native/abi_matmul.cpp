// What of threads, instruction sets and products the library exports.
#include "abi.h"
#include "isa.h"
#include "matmul.h"
#include "threads.h"

#include <stdexcept>

namespace sgc {

std::string& last_error() {
  thread_local std::string error;
  return error;
}

namespace {

template <class Object>
Object& given(void* object) {
  if (object == nullptr) throw std::invalid_argument("a null object");
  return *static_cast<Object*>(object);
}

}  // namespace
}  // namespace sgc

using sgc::given;
using sgc::guarded;

SGC_EXPORT int32_t sgc_cpu_abi() { return sgc::kAbi; }

// What failed last in this thread; valid until something else fails.
SGC_EXPORT const char* sgc_cpu_error() { return sgc::last_error().c_str(); }

SGC_EXPORT int32_t sgc_cpu_isa_has(int32_t isa) { return sgc::has(static_cast<sgc::Isa>(isa)); }
SGC_EXPORT int32_t sgc_cpu_isa_best() { return static_cast<int32_t>(sgc::best()); }
SGC_EXPORT int32_t sgc_cpu_isa_limit(int32_t isa) { return sgc::limit(static_cast<sgc::Isa>(isa)); }

SGC_EXPORT void* sgc_threads_new(int32_t n) {
  return guarded(static_cast<void*>(nullptr), [&] { return new sgc::Threads(n); });
}

SGC_EXPORT void sgc_threads_free(void* threads) { delete static_cast<sgc::Threads*>(threads); }

SGC_EXPORT int32_t sgc_threads_count(void* threads) {
  return guarded(-1, [&] { return given<sgc::Threads>(threads).count(); });
}

// For tests: counts how often each item is begun, and notes by which thread.
SGC_EXPORT int32_t sgc_threads_try(void* threads, int64_t n_items, int32_t* counts, int32_t* by) {
  return guarded(-1, [&] {
    given<sgc::Threads>(threads).run(n_items, [&](int64_t item, int thread) {
      counts[item] += 1;
      by[item] = thread;
    });
    return 0;
  });
}

SGC_EXPORT void* sgc_pack(int32_t format, int32_t packed_as, const sgc::Matrix* weights,
                          int32_t n_weights, int64_t n_in, const float* biases,
                          int32_t interleaved, void* threads) {
  return guarded(static_cast<void*>(nullptr), [&] {
    return sgc::Packed::make(static_cast<sgc::Format>(format), static_cast<sgc::Format>(packed_as),
                             weights, n_weights, n_in, biases, interleaved != 0,
                             given<sgc::Threads>(threads))
        .release();
  });
}

SGC_EXPORT void sgc_packed_free(void* packed) { delete static_cast<sgc::Packed*>(packed); }

SGC_EXPORT int32_t sgc_gather_pages(int64_t n) { return sgc::gather_pages(n); }

SGC_EXPORT int64_t sgc_packed_bytes(void* packed) {
  return guarded(int64_t{-1}, [&] { return given<sgc::Packed>(packed).bytes(); });
}

SGC_EXPORT int64_t sgc_packed_n_out(void* packed) {
  return guarded(int64_t{-1}, [&] { return given<sgc::Packed>(packed).n_out(); });
}

SGC_EXPORT int32_t sgc_multiply(void* packed, const void* x, int64_t x_stride, int64_t n_rows,
                                int32_t epilogue, float scale, void* out, int64_t out_stride,
                                int32_t fastest, void* threads) {
  return guarded(-1, [&] {
    given<sgc::Packed>(packed).multiply(x, x_stride, n_rows, static_cast<sgc::Epilogue>(epilogue),
                                        scale, out, out_stride, fastest != 0,
                                        given<sgc::Threads>(threads));
    return 0;
  });
}
