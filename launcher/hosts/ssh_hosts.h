// Runs a job's processes on hosts reached by ssh.
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
  // Connects to all hosts at the same time. If hosts cannot be reached or lack this version of
  // Leeway, returns FAILED_PRECONDITION, with a message that names the hosts and says what to do. A
  // host without an address gets the address at which ssh reached it.
  static absl::StatusOr<std::unique_ptr<SshHosts>> Connect(std::vector<JobHost> hosts,
                                                           SshCommand ssh);

  // Returns the hosts, all with addresses.
  const std::vector<JobHost>& hosts() const { return hosts_; }
  // Returns true if processes on other machines can reach the servers.
  bool beyond_loopback() const;

  // From now on, a host starts a server only if it sees a file at `path` with this content.
  void ShareFile(std::string path, std::string content);

  std::string ServerListens(uint32_t index) const override;
  std::string WorkerListens(uint32_t rank) const override;
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
