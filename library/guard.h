// Guards every function of client.h, so that no C++ exception leaves it, and so that a forked
// process does not use the jobs and watches of its parent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>

#include "common/clock.h"
#include "library/client.h"
#include "library/codes.h"
#include "library/job.h"

namespace leeway {

// Returns the number of forks between the process that loaded the library and this process.
uint64_t Forks();

// Converts a timeout of client.h to a deadline. The timeout is in seconds, or negative for no
// limit.
Time DeadlineOf(double timeout);

// Returns the limit `seconds`, or `otherwise` if `seconds` is not above 0. The result is at most a
// few years, so that a Duration can hold it.
double LimitOf(double seconds, double otherwise);

leeway_code NullArgument(const char* name);
// Checks the first field of the struct `name`: its value `size` must be `own`, the struct's size in
// this library's header.
leeway_code CheckSize(const char* name, size_t size, size_t own);
leeway_code Forked();
// Returns true if this process was forked while a job or a watch was open. gRPC cannot work in such
// a process, because gRPC's threads stayed behind in the parent.
bool IsForkOfUser();

// Exists as long as a job or a watch is open.
class OpenHandle {
 public:
  OpenHandle();
  ~OpenHandle();
  OpenHandle(const OpenHandle&) = delete;
  // Returns true if this process itself, and not its parent, opened the job or watch.
  bool here() const { return forks_before_ == Forks(); }

 private:
  const uint64_t forks_before_;
};

// Returns the C struct for a tensor. It points into `tensor`.
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
