#include "worker/device/link_rates.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/status.h"
#include "worker/compute/flat_vector.h"

namespace leeway {
namespace {

class Link {
 public:
  Link(Backend& backend, FlatVector up, FlatVector down)
      : backend_(backend), up_(std::move(up)), down_(std::move(down)) {}

  // Returns the best rate of the copies, in bytes per second.
  absl::StatusOr<double> Rate(bool up, bool down) {
    double best = 0;
    for (int round = 0; round < 4; ++round) {
      const Time began = std::chrono::steady_clock::now();
      const StreamEvent sent = up ? up_.StartUp({0, up_.size()}) : StreamEvent();
      const StreamEvent read = down ? down_.StartDown({0, down_.size()}) : StreamEvent();
      // Waits for both copies even if one fails, because they use memory that is about to be freed.
      absl::Status status = backend_.Await(sent);
      status.Update(backend_.Await(read));
      RETURN_IF_ERROR(status);
      const double seconds = Seconds(std::chrono::steady_clock::now() - began);
      const size_t floats = (up ? up_.size() : 0) + (down ? down_.size() : 0);
      if (round > 0) best = std::max(best, static_cast<double>(floats * sizeof(float)) / seconds);
    }
    return best;
  }

 private:
  Backend& backend_;
  FlatVector up_;
  FlatVector down_;
};

}  // namespace

absl::StatusOr<LinkRates> MeasureLinkRates(Backend& backend, size_t bytes) {
  if (backend.shares_host_memory()) {
    return absl::UnimplementedError(
        "the device works in the host's memory, so there is no link to measure");
  }
  const size_t floats = bytes / sizeof(float);
  ASSIGN_OR_RETURN(FlatVector up, FlatVector::Twins(backend, FloatBuffer(floats)));
  ASSIGN_OR_RETURN(FlatVector down, FlatVector::Twins(backend, FloatBuffer(floats)));
  backend.Fill(floats, 0, down.device().data());
  RETURN_IF_ERROR(backend.Await(backend.Record(Stream::kCompute)));
  Link link(backend, std::move(up), std::move(down));
  LinkRates rates;
  ASSIGN_OR_RETURN(rates.up, link.Rate(true, false));
  ASSIGN_OR_RETURN(rates.down, link.Rate(false, true));
  ASSIGN_OR_RETURN(rates.both, link.Rate(true, true));
  return rates;
}

}  // namespace leeway
