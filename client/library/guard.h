// Guards every function of client.h. No C++ exception leaves such a function. A forked process does
// not use what its parent has opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>

#include "client/library/client.h"
#include "client/library/codes.h"
#include "client/library/job.h"
#include "common/clock.h"

namespace leeway {

// How many forks lie between this process and the one that loaded the library.
uint64_t Forks();

// Converts a timeout of client.h: seconds, or a negative number for no limit.
Time DeadlineOf(double timeout);

// Converts a limit in seconds: `otherwise` if it is not above 0, and years if it is longer than
// that.
double LimitOf(double seconds, double otherwise);

leeway_code NullArgument(const char* name);
// Checks that the `size` at the start of a struct is the one of this library's header.
leeway_code CheckSize(const char* name, size_t size, size_t own);
leeway_code Forked();
// True if this process was forked while a job or a watch was open. gRPC cannot work in it, because
// its threads stayed behind.
bool IsForkOfUser();

// Exists as long as a job or a watch is open.
class OpenHandle {
 public:
  OpenHandle();
  ~OpenHandle();
  OpenHandle(const OpenHandle&) = delete;
  // True if this process itself opened it.
  bool here() const { return forks_before_ == Forks(); }

 private:
  const uint64_t forks_before_;
};

// Converts a tensor to its C form. The result points into `tensor`.
leeway_tensor TensorFor(const JobTensor& tensor);

template <typename Work>
leeway_code WithoutExceptions(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Fail(LEEWAY_NO_MEMORY, "memory is exhausted");
  } catch (const std::exception& error) {
    return Fail(LEEWAY_INTERNAL, error.what());
  }
}

}  // namespace leeway
