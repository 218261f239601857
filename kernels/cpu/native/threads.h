// A pool of threads that share a step's work by blocks, taken as each becomes free.
#pragma once

#include <cstdint>
#include <type_traits>

namespace sgc {

class Threads {
 public:
  // n: the threads that work, the caller's own among them; at least 1.
  explicit Threads(int n);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const;

  // Calls work(item, thread) once for each item in [0, n_items), thread in [0, count()). Items are
  // begun in order, each by whichever thread is free, so a thread that loses its core holds up
  // its own item alone. Returns when all are done. Not reentrant; one caller at a time; `work`
  // must not throw.
  template <class Work>
  void run(int64_t n_items, Work&& work) {
    using Callable = std::remove_reference_t<Work>;
    run_erased(
        n_items,
        [](void* callable, int64_t item, int thread) {
          (*static_cast<Callable*>(callable))(item, thread);
        },
        const_cast<void*>(static_cast<const void*>(&work)));
  }

 private:
  using Call = void (*)(void* callable, int64_t item, int thread);
  void run_erased(int64_t n_items, Call call, void* callable);

  struct State;
  State* state_;  // owned
};

}  // namespace sgc
