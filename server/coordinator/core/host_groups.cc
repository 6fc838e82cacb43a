#include "server/coordinator/core/host_groups.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/counted.h"

namespace leeway {
namespace {

// Returns an empty string if the worker does not offer its contributions to other workers.
std::string MemoryHostOf(const v1::RegisterWorkerRequest& request) {
  return request.has_contributions() ? request.memory_host() : "";
}

}  // namespace

HostGroups::HostGroups(const JobFacts& facts) {
  if (facts.job().workers().per_host() != v1::PER_HOST_COMBINE) return;
  places_.resize(facts.job().workers().count());
}

absl::Status HostGroups::Check(const v1::RegisterWorkerRequest& request,
                               std::optional<uint32_t> rank, const std::string& who) const {
  if (!any_combine_) return absl::OkStatus();
  if (!rank) {
    return absl::FailedPreconditionError(absl::StrCat(
        who,
        " asks for any rank, but workers of this job combine their contributions on each host "
        "(workers.per_host: combine): say which worker it replaces (--rank)"));
  }
  const size_t others = MembersOf(*rank).size();
  if (others < 2) return absl::OkStatus();
  const Place& place = places_[*rank];
  if (MemoryHostOf(request) == place.memory_host) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      who, " is on ", request.host(),
      request.host() == place.host
          ? ", but in another container, as another user or without shared memory"
          : "",
      "; worker ", *rank, " began on ", place.host, ", where ", Counted(others - 1, "other worker"),
      " would wait for it in shared memory (workers.per_host: combine): start it there, or resume "
      "the job with workers.per_host: separate"));
}

void HostGroups::Take(const v1::RegisterWorkerRequest& request, uint32_t rank) {
  if (rank >= places_.size()) return;
  Place& place = places_[rank];
  place = {request.host(), MemoryHostOf(request), request.contributions()};
}

void HostGroups::Form() {
  groups_.clear();
  group_of_.clear();
  std::map<std::string, size_t> by_host;
  for (uint32_t rank = 0; rank < places_.size(); ++rank) {
    const Place& place = places_[rank];
    size_t group = groups_.size();
    // A worker that does not offer its contributions is the only member of its group.
    if (!place.memory_host.empty()) {
      group = by_host.try_emplace(place.memory_host, group).first->second;
    }
    if (group == groups_.size()) groups_.emplace_back();
    groups_[group].push_back(rank);
    group_of_.push_back(group);
    any_combine_ |= groups_[group].size() > 1;
  }
}

std::span<const uint32_t> HostGroups::MembersOf(uint32_t rank) const {
  if (rank >= group_of_.size()) return {};
  return groups_[group_of_[rank]];
}

v1::HostGroup HostGroups::GroupOf(uint32_t rank) const {
  v1::HostGroup group;
  for (const uint32_t member : MembersOf(rank)) {
    v1::HostGroupMember& each = *group.add_members();
    each.set_rank(member);
    const Place& place = places_[member];
    if (!place.memory_host.empty()) *each.mutable_contributions() = place.contributions;
  }
  return group;
}

void HostGroups::Fill(uint32_t rank, v1::RegisterWorkerReply& reply) const {
  if (!MembersOf(rank).empty()) *reply.mutable_group() = GroupOf(rank);
}

void HostGroups::Fill(uint32_t rank, v1::HeartbeatReply& reply) const {
  const auto members = MembersOf(rank);
  if (members.size() > 1 && members.front() == rank) *reply.mutable_group() = GroupOf(rank);
}

}  // namespace leeway
