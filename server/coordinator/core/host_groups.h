// Which workers reach each other's memory, and where each has its contributions, for jobs whose
// workers combine them (workers.per_host: combine; client/calls/host_group.h). Owns this; must be told of
// each registration, and when the job begins: from then on the groups stay as they are. In other
// jobs there are no groups.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/job_facts.h"

namespace leeway {

// Pure; not thread-safe.
class HostGroups {
 public:
  explicit HostGroups(const JobFacts& facts);

  // FAILED_PRECONDITION: the others of the rank's group wait for it in memory, which the process
  // does not share. `rank`: the one that it asks for or holds, if any.
  absl::Status Check(const v1::RegisterWorkerRequest& request, std::optional<uint32_t> rank,
                     const std::string& who) const;
  // The rank's newest life.
  void Take(const v1::RegisterWorkerRequest& request, uint32_t rank);
  // Every rank has registered: those of one memory_host are a group.
  void Form();

  // The rank's group, for its newest life.
  void Fill(uint32_t rank, v1::RegisterWorkerReply& reply) const;
  // The same for its heartbeat, if it sends for the others.
  void Fill(uint32_t rank, v1::HeartbeatReply& reply) const;

 private:
  struct Place {
    // For messages.
    std::string host;
    // Empty: it leaves its contributions to nobody.
    std::string memory_host;
    v1::MemoryOffer contributions;
  };
  // The members of the rank's group, rising; none before the groups are formed.
  std::span<const uint32_t> MembersOf(uint32_t rank) const;
  v1::HostGroup GroupOf(uint32_t rank) const;

  // By rank; empty if the job's workers do not combine.
  std::vector<Place> places_;
  // Members, rising; and by rank, which group it is in.
  std::vector<std::vector<uint32_t>> groups_;
  std::vector<size_t> group_of_;
  // Some group has more than one member.
  bool any_combine_ = false;
};

}  // namespace leeway
