// Decides which machine each process of a job runs on. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway {

struct JobHost {
  // The destination for ssh: a name, an address, user@name, or an alias in ~/.ssh/config.
  std::string name = {};
  // The address at which the job's other hosts reach the servers on this host. If empty, Leeway
  // looks it up.
  std::string address = {};
  uint32_t workers = 1;
};

// Parses a list such as "a:2,b=10.0.0.2:2". Each entry has a name, then an address if it should not
// be looked up, then the number of workers (default 1). An IPv6 address is in brackets. Returns
// INVALID_ARGUMENT for a malformed entry, a name that occurs twice, and hosts that do not have
// `workers` workers in total.
absl::StatusOr<std::vector<JobHost>> ParseHosts(const std::string& text, uint32_t workers);

// Return the index in `hosts` of the process's host. Servers go to the hosts in turn, from the
// first host on. Workers fill one host after the other.
size_t HostOfServer(const std::vector<JobHost>& hosts, uint32_t index);
size_t HostOfWorker(const std::vector<JobHost>& hosts, uint32_t rank);

// Returns the processes on `host`, of `servers` servers and all workers: "server 0, worker 0,
// worker 1".
std::string ProcessesOf(const std::vector<JobHost>& hosts, size_t host, uint32_t servers);

}  // namespace leeway
