#include "server/coordinator/core/auto_choice.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace leeway {

absl::Status LinkBook::Check(double link) {
  if (link > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("link: is ", link, ", must be a rate above 0, in bytes a second"));
}

double LinkBook::Slowest(double nominal, bool one_host) const {
  if (links_.empty()) return nominal;
  double slowest = kOneHost;
  for (const auto& [rank, link] : links_) slowest = std::min(slowest, link);
  if (slowest < kProbeMax) return slowest;
  if (slowest < kOneHost) return std::max(slowest, nominal);
  return one_host ? kOneHost : nominal;
}

AutoChoice ChooseAuto(const AutoBasis& basis, const LinkBook& links, bool one_host) {
  const double link = links.Slowest(basis.nominal_link, one_host);
  return {ChooseCodec(link, basis.rates),
          link == LinkBook::kOneHost ? "because all are on one host"
                                     : absl::StrFormat("for a link of %.4g MB/s", link / 1e6)};
}

}  // namespace leeway
