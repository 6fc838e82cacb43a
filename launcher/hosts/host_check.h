// That the hosts of a job can be reached and have the programs, found out before anything starts.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "launcher/hosts/host_list.h"
#include "launcher/hosts/ssh_session.h"

namespace leeway {

// Asks all of them at the same time, and fills in addresses that are not given. FAILED_PRECONDITION
// says of each host what is wrong with it, and what to do; INVALID_ARGUMENT: others do not reach
// one at its address.
absl::Status CheckHosts(const SshCommand& ssh, std::vector<JobHost>& hosts);

// Whether others than its own processes reach a server at its address.
bool ReachesBeyondLoopback(const JobHost& host);

}  // namespace leeway
