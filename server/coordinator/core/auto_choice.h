// Chooses the codec that `auto` compression stands for. It depends on the bandwidth between workers
// and servers, as far as workers have measured it, and on how fast a machine encodes. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "common/codec/choose.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// What is known before any worker has registered.
struct AutoBasis {
  AutoRates rates;
  // Bytes a second, used where the workers' measurements say nothing.
  double nominal_link = 0;
};

// Not thread-safe.
class LinkBook {
 public:
  // A worker's probe (client/transport/link_probe.h) on one processor moves about this number of bytes a
  // second, however fast the link is. A measurement at or above this shows the processor's speed,
  // not the link's.
  static constexpr double kProbeMax = 500e6;
  static constexpr double kOneHost = std::numeric_limits<double>::infinity();

  // INVALID_ARGUMENT if `link` is not a rate.
  static absl::Status Check(double link);
  // Records what a rank has measured, in bytes a second.
  void Take(uint32_t rank, double link) { links_[rank] = link; }

  // Returns the rate to choose the job's codec by, in bytes a second: that of the slowest measured
  // link, because in sync mode everybody waits for it. Returns `nominal` if it says more than the
  // probe can, or if no rank has measured. Returns kOneHost if the servers share one host
  // (`one_host`) and all ranks that have measured are on it.
  double Slowest(double nominal, bool one_host) const;

 private:
  std::map<uint32_t, double> links_;
};

struct AutoChoice {
  v1::Codec codec;
  // Such as "for a link of 12.5 MB/s".
  std::string why;
};
// `one_host`: all servers are on one host.
AutoChoice ChooseAuto(const AutoBasis& basis, const LinkBook& links, bool one_host);

}  // namespace leeway
