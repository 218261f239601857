// What every exported function shares. The ABI is plain C: no torch and no Python headers, so one
// library serves every version of both. An error never leaves as an exception: a function returns
// null or -1, and `sgc_cpu_error` tells what was wrong, for this thread.
#pragma once

#include <exception>
#include <string>

#define SGC_EXPORT extern "C" __attribute__((visibility("default")))

namespace sgc {

constexpr int kAbi = 6;  // kernels/cpu/library.py names the same number

std::string& last_error();

// Runs `work` and returns its result; `failed` where it throws.
template <class Result, class Work>
Result guarded(Result failed, Work&& work) noexcept {
  try {
    return work();
  } catch (const std::exception& error) {
    try {
      last_error() = error.what();
    } catch (...) {
    }
    return failed;
  }
}

}  // namespace sgc
