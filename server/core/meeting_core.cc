#include "server/core/meeting_core.h"

#include "absl/strings/str_cat.h"

namespace leeway {

absl::StatusOr<const MeetingCore::Rank*> MeetingCore::Find(const Sender& sender) const {
  const auto found = ranks_.find(sender.rank);
  if (found == ranks_.end() || found->second.incarnation < sender.incarnation) return nullptr;
  if (found->second.incarnation == sender.incarnation) return &found->second;
  return absl::AbortedError(absl::StrCat(
      "header.incarnation: worker ", sender.rank, " (incarnation ", sender.incarnation,
      ") was replaced by incarnation ", found->second.incarnation, "; this process must stop"));
}

absl::StatusOr<MeetingCore::Decision> MeetingCore::OnMeeting(const Sender& sender) const {
  const absl::StatusOr<const Rank*> rank = Find(sender);
  if (!rank.ok()) return rank.status();
  const Rank* const newest = *rank;
  if (newest == nullptr || sender.clock > newest->clock) return Decision::kMeet;
  if (sender.clock == newest->clock && newest->kept) return Decision::kRepeat;
  return absl::FailedPreconditionError(absl::StrCat(
      "header.clock: worker ", sender.rank, " meets block ", block_, " at clock ", sender.clock,
      sender.clock == newest->clock
          ? ", but has said that it has the answer"
          : absl::StrCat(", but has met it at clock ", newest->clock, " already")));
}

void MeetingCore::OnMet(const Sender& sender) {
  ranks_[sender.rank] = {sender.incarnation, sender.clock, true};
}

absl::StatusOr<bool> MeetingCore::OnTaken(const Sender& sender) {
  const absl::StatusOr<const Rank*> rank = Find(sender);
  if (!rank.ok()) return rank.status();
  if (*rank == nullptr || (*rank)->clock != sender.clock || !(*rank)->kept) return false;
  ranks_[sender.rank].kept = false;
  return true;
}

}  // namespace leeway
