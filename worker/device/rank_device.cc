#include "worker/device/rank_device.h"

#include <chrono>

#include <spdlog/spdlog.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

constexpr Duration kLookAgainAfter = std::chrono::seconds(2);

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> OpenRankDevice(const BackendMaker& make,
                                                        const v1::Workers& workers, uint32_t rank,
                                                        const std::string& began_on,
                                                        const DevicePatience& patience) {
  if (workers.device() != "auto" || began_on.empty()) return make(workers, rank);
  v1::Workers as_before = workers;
  as_before.set_device(began_on);
  for (Duration waited{};; waited += kLookAgainAfter) {
    auto backend = make(as_before, rank);
    if (backend.ok()) return backend;
    const std::string why =
        absl::StrCat("worker ", rank, " began on ", began_on,
                     " (workers.device: auto), and another device would compute other bits: ",
                     backend.status().message());
    if (waited >= patience.within) {
      return absl::UnavailableError(
          absl::StrCat(why,
                       "; to continue on CPUs, with other bits, stop the job and run `leeway train "
                       "--resume --run-dir RUN --set workers.device=cpu`"));
    }
    if (waited == Duration::zero()) spdlog::warn("{}; waiting for it", why);
    patience.sleep(kLookAgainAfter);
  }
}

const char* KindOf(const Backend& backend) { return backend.shares_host_memory() ? "cpu" : "cuda"; }

}  // namespace leeway
