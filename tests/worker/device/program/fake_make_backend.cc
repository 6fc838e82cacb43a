// leeway-worker on the fake device: worker/main.cc with another MakeBackend. The environment says
// how the device runs:
//   LEEWAY_FAKE_SEED      with the rank, the order in which streams run; default: the process id,
//   so
//                         that each life of a worker has another order
//   LEEWAY_FAKE_TIMES     "KERNELS,BUS", bytes a second: work takes as long as its bytes, and the
//                         host goes on meanwhile (EmulatedTimes)
//   LEEWAY_FAKE_MISTAKE   the number of a Mistake, which is made at each occasion
#include <chrono>
#include <cstdlib>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/mutex.h"
#include "common/status.h"
#include "tests/worker/device/fake_device.h"
#include "worker/device/job_precision.h"
#include "worker/device/make_backend.h"

namespace leeway {
namespace {

constexpr size_t kMemoryBytes = size_t{1} << 30;

absl::Status Wrong(const char* name, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", text));
}

absl::StatusOr<std::optional<uint64_t>> NumberOf(const char* name) {
  const char* const text = std::getenv(name);
  uint64_t number = 0;
  if (text == nullptr) return std::nullopt;
  if (!absl::SimpleAtoi(text, &number)) return Wrong(name, text);
  return number;
}

void WaitUntil(Time time) {
  Mutex mutex;
  CondVar nobody;
  MutexLock lock(mutex);
  while (nobody.WaitUntil(mutex, time)) {
  }
}

absl::StatusOr<std::optional<testing::EmulatedTimes>> TimesOf(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, ',');
  testing::EmulatedTimes times;
  if (!absl::SimpleAtod(parts.first, &times.kernel_bytes_a_second) ||
      !absl::SimpleAtod(parts.second, &times.bus_bytes_a_second)) {
    return Wrong(name, text);
  }
  times.clock = {[] { return std::chrono::steady_clock::now(); }, WaitUntil};
  return times;
}

// A device writes into the worker's log which mistake it has found, however the job went on, and
// how many bytes it has carried.
void Report(const testing::FakeDevice& device) {
  spdlog::info("fake device: {} bytes up, {} down, {} of them from memory that is not pinned",
               device.bytes_up(), device.bytes_down(), device.unpinned_bytes());
  if (!device.status().ok()) spdlog::error("fake device: {}", device.status().ToString());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const v1::Workers& workers, uint32_t rank) {
  ASSIGN_OR_RETURN(const std::optional<uint64_t> seed, NumberOf("LEEWAY_FAKE_SEED"));
  ASSIGN_OR_RETURN(const std::optional<uint64_t> mistake, NumberOf("LEEWAY_FAKE_MISTAKE"));
  testing::FakeDeviceOptions options{
      .seed = seed.has_value() ? 100 * *seed + rank : static_cast<uint64_t>(getpid()),
      .memory_bytes = kMemoryBytes,
      .precision = PrecisionOf(workers),
      .on_end = Report};
  if (mistake.has_value()) options.mistake = static_cast<testing::Mistake>(*mistake);
  ASSIGN_OR_RETURN(options.times, TimesOf("LEEWAY_FAKE_TIMES"));
  return testing::FakeDevice::Make(options);
}

}  // namespace leeway
