// A device module for tests. Its faults are chosen when it is compiled: FAKE_ABI and FAKE_BUILD are
// what it reports, FAKE_DEVICES is the number of its devices. Without devices it reports what a
// machine without a driver would. Device 1 is busy, device 2 has no memory left, device 3 is too
// old, and opening device 4 returns nothing.
#include <cstdio>
#include <deque>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "tests/worker/device/cuda/host_runtime.h"
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/module_abi.h"

#if !defined(FAKE_ABI)
#define FAKE_ABI leeway::kModuleAbi
#endif
#if !defined(FAKE_BUILD)
#define FAKE_BUILD LEEWAY_MODULE_BUILD
#endif

namespace leeway {
namespace {

int Fail(absl::StatusCode code, const char* why, char* error, uint32_t error_bytes) {
  std::snprintf(error, error_bytes, "%s", why);
  return static_cast<int>(code);
}

[[maybe_unused]] int List(LeewayDeviceInfo* devices, uint32_t capacity, uint32_t measure,
                          uint32_t* count, char* error, uint32_t error_bytes) {
  *count = FAKE_DEVICES;
  if (FAKE_DEVICES == 0) {
    return Fail(absl::StatusCode::kFailedPrecondition, "no driver runs", error, error_bytes);
  }
  for (uint32_t i = 0; i < *count && i < capacity; ++i) {
    // A device of an imaginary machine.
    devices[i] = {"A fake GPU",  9, 0, uint64_t{80} << 30, measure != 0 ? uint64_t{60} << 30 : 0,
                  "ffff:ff:1f.7"};
  }
  return 0;
}

[[maybe_unused]] int Open(uint32_t index, uint32_t precision, void** backend, char* text,
                          uint32_t text_bytes) {
  switch (index) {
    case 0: {
      // Each backend has its own: workers of one process use them side by side.
      static Mutex mutex;
      static std::deque<testing::HostRuntimeCounts> all;
      mutex.Lock();
      testing::HostRuntimeCounts& counts = all.emplace_back();
      mutex.Unlock();
      auto made = cuda::CudaBackend::Make(testing::MakeHostRuntime({}, counts), false,
                                          static_cast<Precision>(precision));
      if (made.ok()) *backend = static_cast<Backend*>(made->release());
      std::snprintf(text, text_bytes, "all by hand");
      return static_cast<int>(made.status().code());
    }
    case 1:
      return Fail(absl::StatusCode::kUnavailable, "busy", text, text_bytes);
    case 2:
      return Fail(absl::StatusCode::kResourceExhausted, "no memory left", text, text_bytes);
    case 3:
      return Fail(absl::StatusCode::kUnimplemented, "too old", text, text_bytes);
    case 4:
      return 0;
    default:
      return Fail(absl::StatusCode::kOutOfRange, "no such device", text, text_bytes);
  }
}

}  // namespace
}  // namespace leeway

#if defined(FAKE_NO_ENTRY)
extern "C" void leeway_nothing() {}
#elif defined(FAKE_NO_TABLE)
extern "C" const leeway::LeewayDeviceModule* leeway_device_module() { return nullptr; }
#else
extern "C" const leeway::LeewayDeviceModule* leeway_device_module() {
  static const leeway::LeewayDeviceModule table = {FAKE_ABI, FAKE_BUILD, leeway::List,
                                                   leeway::Open};
  return &table;
}
#endif
