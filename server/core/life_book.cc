#include "server/core/life_book.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace leeway {

void LifeBook::Learn(const std::vector<uint64_t>& incarnations) {
  const size_t ranks = std::min(newest_.size(), incarnations.size());
  for (size_t rank = 0; rank < ranks; ++rank) {
    newest_[rank] = std::max(newest_[rank], incarnations[rank]);
  }
}

absl::Status LifeBook::Check(uint32_t rank, uint64_t incarnation) const {
  if (rank >= newest_.size()) return absl::OkStatus();
  if (incarnation == newest_[rank] && incarnation > 0) return absl::OkStatus();
  if (incarnation < newest_[rank]) {
    return absl::AbortedError(absl::StrCat("header.incarnation: worker ", rank, " (incarnation ",
                                           incarnation, ") was replaced by incarnation ",
                                           newest_[rank], "; this process must stop"));
  }
  return absl::UnavailableError(absl::StrCat(
      "header.incarnation: the coordinator has not yet told this server about incarnation ",
      incarnation, " of worker ", rank,
      "; this server is asking the coordinator, so send the request again"));
}

}  // namespace leeway
