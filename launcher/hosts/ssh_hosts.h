// Hosts reached by ssh as the places of a job's processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/hosts/host_list.h"
#include "launcher/hosts/ssh_session.h"
#include "launcher/supervision/job_process.h"

namespace leeway {

class SshHosts : public JobHosts {
 public:
  // Asks all hosts at the same time who they are. FAILED_PRECONDITION names each host that cannot
  // be reached, or has no Leeway of this version, and what to do. Addresses that are not given are
  // those at which ssh reached the hosts.
  static absl::StatusOr<std::unique_ptr<SshHosts>> Connect(std::vector<JobHost> hosts,
                                                           SshCommand ssh);

  // With their addresses.
  const std::vector<JobHost>& hosts() const { return hosts_; }
  // Servers are reached from other machines.
  bool beyond_loopback() const;

  // From now on hosts that are to start a server must see `path` with this content.
  void ShareFile(std::string path, std::string content);

  std::string ListenAddress(uint32_t index) const override;
  absl::StatusOr<std::unique_ptr<JobProcess>> Start(const Launch& launch) override;

 private:
  SshHosts(std::vector<JobHost> hosts, SshCommand ssh)
      : hosts_(std::move(hosts)), ssh_(std::move(ssh)) {}

  const std::vector<JobHost> hosts_;
  const SshCommand ssh_;
  std::string shared_file_;
  std::string shared_content_;
};

}  // namespace leeway
