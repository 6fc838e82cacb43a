// The processes of a job that this launcher starts: how each one is started, where its log is, and
// which of them wait to be started again. The supervisor decides about them.
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

// A place of the job, and the process in it.
struct Child {
  bool server = false;
  uint32_t number = 0;
  std::unique_ptr<JobProcess> process;
  // The time at which the process is to be restarted, if it waits for that.
  std::optional<Time> restart_at;
  // Whether a process of another launcher has taken this place.
  bool elsewhere = false;
  // For a worker that has ended in order: the number of the coordinator's answers received since
  // then.
  std::optional<uint32_t> answers_since_done;
  // The process id of the newest process in this place that has ended.
  pid_t done_pid = 0;
  // The last line of the log when the previous process in this place crashed.
  std::string last_line;
};

class Children {
 public:
  // `spec` and `hosts` must outlive this object.
  Children(const SupervisorSpec& spec, JobHosts& hosts);

  // The servers and workers of the start of the job, in this order, and then servers that were
  // added later.
  std::vector<Child>& all() { return all_; }
  const std::vector<Child>& all() const { return all_; }
  Child& first_server() { return all_.front(); }
  const Child& first_server() const { return all_.front(); }
  // Adds the server if it does not exist yet. References to other children become invalid.
  Child& Server(uint32_t index);

  // All processes but server 0 need the coordinator's address. A restarted server 0 keeps it.
  void SetCoordinator(const std::string& address) { coordinator_ = address; }
  absl::Status Start(Child& child);
  std::string LogFile(const Child& child) const;

  // Whether any process runs or waits to be started again.
  bool Any() const;
  // The earliest time at which a process is to be started again, but at most `latest`.
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
  // Empty until server 0 listens.
  std::string coordinator_;
  std::vector<Child> all_;
};

}  // namespace leeway
