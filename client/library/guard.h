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

leeway_code NullArgument(const char* name);
// The `size` that begins a struct is what this library's header says.
leeway_code CheckSize(const char* name, size_t size, size_t own);
leeway_code Forked();

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
