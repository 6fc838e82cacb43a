#include "library/guard.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include <pthread.h>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

// About three years, in seconds. Longer timeouts do not fit a Duration, so they count as endless.
constexpr double kForEver = 1e8;

std::atomic<uint64_t> forks = 0;
std::atomic<int> open_handles = 0;
std::atomic<bool> is_fork_of_user = false;
const int watches_forks = pthread_atfork(nullptr, nullptr, [] {
  ++forks;
  if (open_handles > 0) is_fork_of_user = true;
});

}  // namespace

uint64_t Forks() { return forks; }

Time DeadlineOf(double timeout) {
  if (!(timeout >= 0) || timeout > kForEver) return Time::max();
  return std::chrono::steady_clock::now() + FromSeconds(timeout);
}

double LimitOf(double seconds, double otherwise) {
  return seconds > 0 ? std::min(seconds, kForEver) : otherwise;
}

leeway_code NullArgument(const char* name) {
  return Fail(LEEWAY_MISUSE, absl::StrCat(name, " is null"));
}

leeway_code CheckSize(const char* name, size_t size, size_t own) {
  if (size == own) return LEEWAY_OK;
  return Fail(LEEWAY_MISUSE,
              absl::StrCat(name, ".size is ", size, ", not ", own,
                           ": the program was compiled with another version of client.h"));
}

bool IsForkOfUser() { return is_fork_of_user; }

OpenHandle::OpenHandle() : forks_before_(Forks()) { ++open_handles; }
OpenHandle::~OpenHandle() { --open_handles; }

leeway_code Forked() {
  return Fail(LEEWAY_FORKED,
              "this process was forked from the process that is connected to the servers, and "
              "connections do not survive a fork: start other processes before joining, or start "
              "them by spawn or forkserver");
}

leeway_tensor TensorFor(const JobTensor& tensor) {
  return {tensor.name.c_str(),
          tensor.shape.data(),
          static_cast<uint32_t>(tensor.shape.size()),
          static_cast<leeway_tensor_kind>(tensor.kind),
          tensor.averaged ? 1 : 0,
          tensor.momentum,
          tensor.learning_rate_factor,
          tensor.weight_decay_factor};
}

}  // namespace leeway
