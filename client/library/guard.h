// What every function of client.h does first: nothing of C++ leaves it, and no process uses what
// the one that it was forked from has opened.
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

// How often this process is a fork of one that had loaded the library.
uint64_t Forks();

// Of a timeout as client.h has them: in seconds, negative for none.
Time DeadlineOf(double timeout);

// Of a limit in seconds: `otherwise` if it is none, and years if it is more.
double LimitOf(double seconds, double otherwise);

leeway_code NullArgument(const char* name);
// The `size` that begins a struct is what this library's header says.
leeway_code CheckSize(const char* name, size_t size, size_t own);
leeway_code Forked();
// This process was forked while a job or a watch was open: gRPC, whose threads stayed behind, works
// in it no more.
bool IsForkOfUser();

// As long as a job or a watch is open.
class OpenHandle {
 public:
  OpenHandle();
  ~OpenHandle();
  OpenHandle(const OpenHandle&) = delete;
  // It was opened by this process itself.
  bool here() const { return forks_before_ == Forks(); }

 private:
  const uint64_t forks_before_;
};

// As C has it; what it points to lives as long as `tensor`.
leeway_tensor TensorFor(const JobTensor& tensor);

template <typename Work>
leeway_code WithoutExceptions(Work work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Fail(LEEWAY_NO_MEMORY, "there is no memory");
  } catch (const std::exception& error) {
    return Fail(LEEWAY_INTERNAL, error.what());
  }
}

}  // namespace leeway
