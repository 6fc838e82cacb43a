// Checks that the hosts of a job can be reached and have the programs, before anything starts.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "launcher/hosts/host_list.h"
#include "launcher/hosts/ssh_session.h"

namespace leeway {

// Asks all hosts at the same time, and fills in missing addresses. Returns FAILED_PRECONDITION,
// which says for each bad host what is wrong and what to do. Returns INVALID_ARGUMENT if the other
// hosts cannot reach a host at its address.
absl::Status CheckHosts(const SshCommand& ssh, std::vector<JobHost>& hosts);

// Returns whether processes on other hosts can reach a server at the host's address.
bool ReachesBeyondLoopback(const JobHost& host);

}  // namespace leeway
