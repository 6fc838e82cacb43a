#include "server/coordinator/link_book.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace leeway {

absl::Status LinkBook::Check(double link) {
  if (link > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("link: ", link, " is no rate in bytes a second above 0"));
}

double LinkBook::Slowest(double nominal, bool one_host) const {
  if (links_.empty()) return nominal;
  double slowest = kOneHost;
  for (const auto& [rank, link] : links_) slowest = std::min(slowest, link);
  if (slowest < kProbeMax) return slowest;
  if (slowest < kOneHost) return std::max(slowest, nominal);
  return one_host ? kOneHost : nominal;
}

}  // namespace leeway
