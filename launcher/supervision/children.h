// The processes of a job that this launcher starts: how each one is started, where its log is, and
// which of them wait to be started again. The supervisor decides what happens to them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/status/status.h"
#include "common/clock.h"
#include "launcher/supervision/job_process.h"
#include "launcher/supervision/supervisor_spec.h"

namespace leeway {

// A place in the job, which a server or a worker has, and the process that has the place now.
struct Child {
  bool server = false;
  uint32_t number = 0;
  std::unique_ptr<JobProcess> process;
  // The time at which the process will be restarted, if it waits for a restart.
  std::optional<Time> restart_at;
  // Whether another launcher's process has taken this place.
  bool elsewhere = false;
  // How many answers of the coordinator have come since the worker ended in order. Absent if the
  // worker has not ended in order.
  std::optional<uint32_t> answers_since_done;
  // The process id of the newest process in this place that has ended.
  pid_t done_pid = 0;
  // The last line that the previous process in this place logged before it crashed.
  std::string last_line;
};

class Children {
 public:
  // `spec` and `hosts` must outlive this object.
  Children(const SupervisorSpec& spec, JobHosts& hosts);

  // Returns the servers and then the workers with which the job started, and after them the servers
  // that were added later.
  std::vector<Child>& all() { return all_; }
  const std::vector<Child>& all() const { return all_; }
  Child& first_server() { return all_.front(); }
  const Child& first_server() const { return all_.front(); }
  // Adds the server if it does not exist yet. References to other children become invalid.
  Child& Server(uint32_t index);

  // Sets the coordinator's address for all processes. A restarted server 0 keeps this address.
  void SetCoordinator(const std::string& address) { coordinator_ = address; }
  absl::Status Start(Child& child);
  std::string LogFile(const Child& child) const;

  // Returns true if any process runs or waits to be started again.
  bool Any() const;
  // Returns the earliest time at which a process is to be started again, but at most `latest`.
  Time NextRestart(Time latest) const;
  void CancelRestarts();
  void SignalAll(int signal);
  // Ends the whole job. Servers get SIGINT, because SIGTERM would ask only that one server to
  // leave.
  void EndAll();

 private:
  Launch ServerLaunch(uint32_t index) const;
  Launch WorkerLaunch(uint32_t rank) const;

  const SupervisorSpec& spec_;
  JobHosts& hosts_;
  // The coordinator's address. Empty until server 0 listens.
  std::string coordinator_;
  std::vector<Child> all_;
};

}  // namespace leeway
