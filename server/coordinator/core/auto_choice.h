// What `auto` compression stands for: by how fast the ways between the workers and the servers are,
// as far as workers have measured them, and how fast a machine encodes. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "common/codec/choose.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// What is known before any worker has come.
struct AutoBasis {
  AutoRates rates;
  // Bytes a second, where the workers' measurements say nothing.
  double nominal_link = 0;
};

// Not thread-safe.
class LinkBook {
 public:
  // A worker's probe (client/transport/link_probe.h) on one processor moves about so many bytes a
  // second whatever the wire: from here on it says what the processor does.
  static constexpr double kProbeMax = 500e6;
  static constexpr double kOneHost = std::numeric_limits<double>::infinity();

  // INVALID_ARGUMENT: no rate.
  static absl::Status Check(double link);
  // What a rank has measured, in bytes a second.
  void Take(uint32_t rank, double link) { links_[rank] = link; }

  // What the job's codec is to be chosen by, in bytes a second: the slowest way that was measured,
  // for in sync mode all wait for it; `nominal` where that says more than the probe can, or nobody
  // has measured. kOneHost: all who have are on the host of the servers, of which `one_host` says
  // that they have one.
  double Slowest(double nominal, bool one_host) const;

 private:
  std::map<uint32_t, double> links_;
};

struct AutoChoice {
  v1::Codec codec;
  // "for a link of 12.5 MB/s".
  std::string why;
};
// `one_host`: the servers are on one.
AutoChoice ChooseAuto(const AutoBasis& basis, const LinkBook& links, bool one_host);

}  // namespace leeway
