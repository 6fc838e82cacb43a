// Chooses the codec that `auto` compression stands for. The choice depends on the bandwidth that
// workers have measured between themselves and the servers, and on how fast a machine encodes.
// Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "common/codec/choose.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// What the coordinator knows before any worker has registered.
struct AutoBasis {
  AutoRates rates;
  // The assumed bandwidth of a link in bytes a second, used if the workers' measurements do not
  // show the real one.
  double nominal_link = 0;
};

// Not thread-safe.
class LinkBook {
 public:
  // The number of bytes a second that a worker's probe (client/transport/link_probe.h) moves on one
  // processor, however fast the link is. A measurement at or above this number shows the speed of
  // the processor, not of the link.
  static constexpr double kProbeMax = 500e6;
  static constexpr double kOneHost = std::numeric_limits<double>::infinity();

  // Returns INVALID_ARGUMENT if `link` is not a rate.
  static absl::Status Check(double link);
  // Records what a rank has measured, in bytes a second.
  void Take(uint32_t rank, double link) { links_[rank] = link; }

  // Returns the bandwidth for which the codec is chosen, in bytes a second: that of the slowest
  // measured link, because in sync mode everybody waits for the slowest link. If that measurement
  // is at or above kProbeMax, it shows only a lower limit, so a larger `nominal` is returned
  // instead. Returns `nominal` if no rank has measured a link. Returns kOneHost if the servers
  // share one host (`one_host`) and all ranks that have measured are on that host.
  double Slowest(double nominal, bool one_host) const;

 private:
  std::map<uint32_t, double> links_;
};

struct AutoChoice {
  v1::Codec codec;
  // The reason for the choice, such as "for a link of 12.5 MB/s".
  std::string why;
};
// `one_host` is true if all servers are on one host.
AutoChoice ChooseAuto(const AutoBasis& basis, const LinkBook& links, bool one_host);

}  // namespace leeway
