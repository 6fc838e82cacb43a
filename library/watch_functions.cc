// Implements the leeway_watch_* functions of client.h: they call Watch, and turn its errors into
// codes.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "library/client.h"
#include "library/codes.h"
#include "library/guard.h"
#include "library/job.h"
#include "library/watch.h"

struct leeway_watch {
  std::unique_ptr<leeway::Watch> watch;
  leeway::OpenHandle open;
  // True if the watch has read at least once, and no read is pending.
  bool has_read = false;
  // Holds the memory to which the result of leeway_watch_tensor_of points.
  std::vector<leeway::JobTensor> tensors = {};
};

namespace {

using leeway::CodeOf;
using leeway::DeadlineOf;
using leeway::Fail;
using leeway::NullArgument;

constexpr double kStartSeconds = 120;

template <typename Work>
leeway_code GuardedWatch(leeway_watch* watch, bool has_read, Work work) {
  if (watch == nullptr) return Fail(LEEWAY_MISUSE, "the watch is null");
  if (!watch->open.here()) return leeway::Forked();
  if (has_read && !watch->has_read) {
    return Fail(LEEWAY_MISUSE, "nothing has been read: call leeway_watch_read first");
  }
  return leeway::WithoutExceptions(work);
}

}  // namespace

extern "C" {

leeway_code leeway_watch_open(const char* coordinator, double start_seconds, leeway_watch** watch) {
  if (watch == nullptr) return NullArgument("watch");
  *watch = nullptr;
  if (leeway::IsForkOfUser()) return leeway::Forked();
  return leeway::WithoutExceptions([&] {
    auto opened = leeway::Watch::Open(coordinator != nullptr ? coordinator : "",
                                      leeway::LimitOf(start_seconds, kStartSeconds));
    if (!opened.ok()) return CodeOf(opened.status());
    auto made = std::make_unique<leeway_watch>();
    made->watch = *std::move(opened);
    *watch = made.release();
    return LEEWAY_OK;
  });
}

leeway_code leeway_watch_read(leeway_watch* watch, double timeout, uint64_t* version) {
  return GuardedWatch(watch, false, [&] {
    watch->has_read = false;
    const auto read = watch->watch->Read(DeadlineOf(timeout));
    if (absl::IsAlreadyExists(read.status())) {
      return Fail(LEEWAY_FINISHED, std::string(read.status().message()));
    }
    const leeway_code code = CodeOf(read);
    if (code != LEEWAY_OK) return code;
    watch->has_read = true;
    if (version != nullptr) *version = watch->watch->version();
    return code;
  });
}

leeway_code leeway_watch_tensor_of(leeway_watch* watch, size_t index, leeway_tensor* tensor) {
  return GuardedWatch(watch, true, [&] {
    if (tensor == nullptr) return NullArgument("tensor");
    if (watch->tensors.empty()) watch->tensors = watch->watch->tensors();
    if (index >= watch->tensors.size()) return Fail(LEEWAY_NOT_FOUND, "no tensor has this index");
    *tensor = leeway::TensorFor(watch->tensors[index]);
    return LEEWAY_OK;
  });
}

const float* leeway_watch_weights(leeway_watch* watch) {
  const float* weights = nullptr;
  GuardedWatch(watch, true, [&] {
    weights = watch->watch->weights().data();
    return LEEWAY_OK;
  });
  return weights;
}

void leeway_watch_free(leeway_watch* watch) {
  // The watch's threads stayed in the parent process.
  if (watch == nullptr || !watch->open.here()) return;
  delete watch;
}

}  // extern "C"
