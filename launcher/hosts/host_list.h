// Which machine each process of a job runs on. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

struct JobHost {
  // What ssh is given: a name, an address, user@name, an alias of ~/.ssh/config.
  std::string name = {};
  // At which the job's other hosts reach its servers; empty: it is looked up.
  std::string address = {};
  uint32_t workers = 1;
};

// "a:2,b=10.0.0.2:2": names with the number of workers on each (1 where there is none), and if they
// are not to be looked up, addresses. An IPv6 address is in brackets. INVALID_ARGUMENT for what is
// none, a name that comes twice, and hosts that do not have `workers` workers in all.
absl::StatusOr<std::vector<JobHost>> ParseHosts(const std::string& text, uint32_t workers);

// Servers go over the hosts in turn, from the first on; workers fill one after the other. Both are
// places in `hosts`.
size_t HostOfServer(const std::vector<JobHost>& hosts, uint32_t index);
size_t HostOfWorker(const std::vector<JobHost>& hosts, uint32_t rank);

// Those of `servers` servers on it, and its workers: "server 0, worker 0, worker 1".
std::string ProcessesOf(const std::vector<JobHost>& hosts, size_t host, uint32_t servers);

}  // namespace leeway
