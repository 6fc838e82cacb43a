// Knows which workers can map each other's memory, and where each worker's contributions are. For
// jobs whose workers combine their contributions (workers.per_host: combine;
// client/calls/host_group.h). Owns these facts. The core must report here each registration, and
// when the job begins. After that the groups do not change. Other jobs have no groups.
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

  // Returns FAILED_PRECONDITION if this process cannot take the rank's place in its group, because
  // it does not share memory with the other members. `rank` is the rank that the process asks for
  // or holds, if any.
  absl::Status Check(const v1::RegisterWorkerRequest& request, std::optional<uint32_t> rank,
                     const std::string& who) const;
  // Takes the registration of the rank's newest life.
  void Take(const v1::RegisterWorkerRequest& request, uint32_t rank);
  // Forms the groups once every rank has registered. Ranks with the same memory_host become a
  // group.
  void Form();

  // Describes the rank's group to its newest life.
  void Fill(uint32_t rank, v1::RegisterWorkerReply& reply) const;
  // Describes the group in a heartbeat's reply, if the rank sends contributions for its group.
  void Fill(uint32_t rank, v1::HeartbeatReply& reply) const;

 private:
  struct Place {
    // The host's name, for messages.
    std::string host;
    // Empty if the worker does not offer its contributions to others.
    std::string memory_host;
    v1::MemoryOffer contributions;
  };
  // Returns the members of the rank's group in ascending order. The list is empty before the groups
  // are formed.
  std::span<const uint32_t> MembersOf(uint32_t rank) const;
  v1::HostGroup GroupOf(uint32_t rank) const;

  // The place of each rank; empty if the workers of the job do not combine their contributions.
  std::vector<Place> places_;
  // The members of each group, in ascending order.
  std::vector<std::vector<uint32_t>> groups_;
  // The index of each rank's group, by rank.
  std::vector<size_t> group_of_;
  // True if some group has more than one member.
  bool any_combine_ = false;
};

}  // namespace leeway
