#include "threads.h"

#include <utility>
#include <exception>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace sgc {
namespace {

// A worker that has slept takes some 10 to 50 us to begin. Within a step the next run follows in a
// few microseconds; between steps others need the core more than we do.
constexpr auto kSpin = std::chrono::microseconds(40);
constexpr int kPausesPerLook = 16;  // the clock takes longer than a pause
constexpr int64_t kMaxItems = int64_t{1} << 31;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// Waits for `is_ready` for a bounded time, and returns whether it was.
template <class Ready>
bool spin(Ready&& is_ready) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (is_ready()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// The signals of a process are for the threads that its own code began, but for those that tell of a
// fault in the thread itself.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

// A run is one word: the next item in its upper half, the number of items in its lower. Adding to
// the upper half claims an item of whichever run is current at that moment, so that a thread that
// comes late can never take an item of a run that is over. The run's function is read only after a
// claim, and a run with a claimed item is not over: its caller waits until all items are finished.
struct Threads::State {
  static constexpr uint64_t kNext = uint64_t{1} << 32;

  alignas(64) std::atomic<uint64_t> items{0};
  alignas(64) std::atomic<uint32_t> n_finished{0};
  alignas(64) std::atomic<uint32_t> n_asleep{0};  // workers, or about to
  std::atomic<uint32_t> wakes{0};                 // what sleeping workers wait on
  std::atomic<bool> caller_sleeps{false};
  std::atomic<bool> is_over{false};
  Call call = nullptr;
  void* callable = nullptr;
  std::atomic<bool> has_fault{false};
  std::exception_ptr fault;
  pid_t owner = getpid();
  std::vector<std::thread> workers;

  static bool has_items(uint64_t word) { return word >> 32 < (word & (kNext - 1)); }
  bool has_items() const { return has_items(items.load(std::memory_order_relaxed)); }

  // Works until all items are claimed. The first exception is kept for the caller.
  void work(int thread) noexcept {
    uint32_t n = 0;
    while (has_items()) {
      const uint64_t word = items.fetch_add(kNext, std::memory_order_acquire);
      if (!has_items(word)) break;
      try {
        call(callable, static_cast<int64_t>(word >> 32), thread);
      } catch (...) {
        if (!has_fault.exchange(true)) fault = std::current_exception();
      }
      ++n;
    }
    if (n == 0) return;
    // In one order with `caller_sleeps`: either the caller sees the count or we see that it sleeps.
    n_finished.fetch_add(n);
    if (caller_sleeps.load()) n_finished.notify_one();
  }

  void live(int thread) {
    while (!is_over.load()) {
      work(thread);
      if (!spin([this] { return has_items() || is_over.load(std::memory_order_relaxed); })) sleep();
    }
  }

  void sleep() {
    const uint32_t seen = wakes.load();
    n_asleep.fetch_add(1);
    if (!has_items(items.load()) && !is_over.load()) wakes.wait(seen);
    n_asleep.fetch_sub(1);
  }

  void begin(uint32_t n_items) {
    n_finished.store(0, std::memory_order_relaxed);
    items.store(n_items);  // in one order with `n_asleep`, as above
    if (const uint32_t n = n_asleep.load()) wake(std::min(n, n_items - 1));
  }

  void wake(uint32_t n) {
    wakes.fetch_add(1);
    if (n >= workers.size()) {
      wakes.notify_all();
    } else {
      while (n-- > 0) wakes.notify_one();
    }
  }

  void await(uint32_t n_items) {
    const auto is_done = [&] { return n_finished.load(std::memory_order_acquire) == n_items; };
    if (is_done() || spin(is_done)) return;
    caller_sleeps.store(true);
    for (uint32_t n = n_finished.load(); n != n_items; n = n_finished.load()) n_finished.wait(n);
    caller_sleeps.store(false);
  }

  void end() {
    is_over.store(true);
    wake(static_cast<uint32_t>(workers.size()));
    for (std::thread& worker : workers) {
      if (getpid() == owner) {
        worker.join();
      } else {
        worker.detach();  // a fork has no threads but the one that forked
      }
    }
  }
};

Threads::Threads(int n) {
  if (n < 1) throw std::invalid_argument("a pool needs at least one thread");
  auto state = std::make_unique<State>();
  state->workers.reserve(static_cast<size_t>(n - 1));
  state_ = state.release();
  const BlockedSignals blocked;
  try {
    for (int i = 1; i < n; ++i) {
      state_->workers.emplace_back([state = state_, i] { state->live(i); });
    }
  } catch (const std::system_error&) {
    // The system allows no more threads: fewer do the work.
  }
}

Threads::~Threads() {
  state_->end();
  delete state_;
}

int Threads::count() const { return static_cast<int>(state_->workers.size()) + 1; }

void Threads::run_erased(int64_t n_items, Call call, void* callable) {
  if (n_items <= 0) return;
  if (n_items == 1 || count() == 1) {
    for (int64_t item = 0; item < n_items; ++item) call(callable, item, 0);
    return;
  }
  if (n_items >= kMaxItems) throw std::length_error("too many items");
  state_->call = call;
  state_->callable = callable;
  state_->begin(static_cast<uint32_t>(n_items));
  state_->work(0);
  state_->await(static_cast<uint32_t>(n_items));
  if (state_->has_fault.exchange(false)) std::rethrow_exception(std::exchange(state_->fault, nullptr));
}

}  // namespace sgc
