// Short phrases for messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "config/topology.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The most elements of a list that a message names.
inline constexpr size_t kNamedMax = 8;

// Returns a list such as "worker 1", "workers 1, 2" or "workers 0, 1, 2, 3, 4, 5, 6, 7 and 12
// more"; an empty string for an empty list. `size` is the length of the list, and `numbers` are its
// first elements.
inline std::string ListOf(const char* what, const std::vector<uint32_t>& numbers, size_t size) {
  std::string text;
  for (size_t i = 0; i < numbers.size() && i < kNamedMax; ++i) {
    if (i == 0) {
      absl::StrAppend(&text, what, numbers.size() > 1 ? "s " : " ", numbers[i]);
    } else {
      absl::StrAppend(&text, ", ", numbers[i]);
    }
  }
  if (size > kNamedMax) absl::StrAppend(&text, " and ", size - kNamedMax, " more");
  return text;
}
inline std::string ListOf(const char* what, const std::vector<uint32_t>& numbers) {
  return ListOf(what, numbers, numbers.size());
}

// Returns the name of a server for a person: "server 1", or "worker 0's server" if it is in the
// process of a worker.
inline std::string ServerName(const v1::TrainingJob& job, uint32_t server) {
  const uint32_t first = FirstHolderOf(job);
  if (!WorkersHoldBlocks(job) || server < first) return absl::StrCat("server ", server);
  return absl::StrCat("worker ", server - first, "'s server");
}
// Returns the names of several servers, such as "servers 1, 2" or "the servers of workers 0, 1".
inline std::string ListOfServers(const v1::TrainingJob& job, std::vector<uint32_t> servers) {
  if (!WorkersHoldBlocks(job)) return ListOf("server", servers);
  if (servers.size() == 1) return ServerName(job, servers.front());
  std::string coordinator;
  if (std::erase(servers, 0u) > 0) coordinator = "server 0";
  for (uint32_t& server : servers) server -= FirstHolderOf(job);
  const std::string others = ListOf("worker", servers);
  return others.empty() ? coordinator
                        : absl::StrCat(coordinator, coordinator.empty() ? "" : " and ",
                                       "the servers of ", others);
}

// Joins two phrases with "and"; if one of them is empty, returns the other one.
inline std::string And(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : absl::StrCat(a, " and ", b);
}

}  // namespace leeway
