#include "client/library/guard.h"

#include <atomic>
#include <chrono>

#include <pthread.h>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

std::atomic<uint64_t> forks = 0;
const int watches_forks = pthread_atfork(nullptr, nullptr, [] { ++forks; });

}  // namespace

uint64_t Forks() { return forks; }

Time DeadlineOf(double timeout) {
  // Years are for ever, and do not fit.
  if (!(timeout >= 0) || timeout > 1e8) return Time::max();
  return std::chrono::steady_clock::now() + FromSeconds(timeout);
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

leeway_code Forked() {
  return Fail(LEEWAY_FORKED,
              "this process was forked from the one that speaks to the servers, and connections do "
              "not outlive that: start other processes before joining, or by spawn or forkserver");
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
