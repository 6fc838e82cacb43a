#include "launcher/supervision/local_hosts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "launcher/supervision/event_set.h"

namespace leeway {
namespace {

class LocalProcess : public JobProcess {
 public:
  LocalProcess(std::unique_ptr<Process> process, EventSet events)
      : process_(std::move(process)), events_(std::move(events)) {}

  const std::string& name() const override { return process_->name(); }
  pid_t pid() const override { return process_->pid(); }
  int fd() const override { return events_.fd(); }

  absl::StatusOr<News> TakeNews() override {
    News news;
    const std::set<int> readable = events_.Readable();
    if (process_->ready_fd() >= 0 && readable.contains(process_->ready_fd())) {
      bool complete = false;
      absl::StatusOr<std::string> line = process_->ReadReady(&complete);
      // If the line is incomplete, the process is about to end, and its exit will show why.
      if (line.ok() && complete) news.ready = *std::move(line);
    }
    if (readable.contains(process_->exit_fd())) {
      absl::StatusOr<ExitStatus> exit = process_->Collect();
      if (absl::IsUnavailable(exit.status())) return news;
      RETURN_IF_ERROR(exit.status());
      news.exit = *std::move(exit);
    }
    return news;
  }

  void Signal(int signal) override { process_->Signal(signal); }
  bool Traced() const override { return process_->Traced(); }
  bool Includes(pid_t pid) const override { return process_->Includes(pid); }

 private:
  const std::unique_ptr<Process> process_;
  const EventSet events_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<JobProcess>> LocalHosts::Start(const Launch& launch) {
  ProcessSpec spec{.name = launch.name(),
                   .arguments = launch.command,
                   .environment = launch.environment,
                   .output_file = launch.log_file,
                   .announces_ready = launch.announces_ready,
                   .starts_others = !launch.command.empty()};
  if (spec.arguments.empty()) {
    spec.arguments = {absl::StrCat(program_dir_, "/", launch.program())};
  }
  spec.arguments.insert(spec.arguments.end(), launch.arguments.begin(), launch.arguments.end());
  ASSIGN_OR_RETURN(std::unique_ptr<Process> process, Process::Start(spec));
  ASSIGN_OR_RETURN(EventSet events, EventSet::Make());
  RETURN_IF_ERROR(events.Add(process->exit_fd()));
  if (process->ready_fd() >= 0) RETURN_IF_ERROR(events.Add(process->ready_fd()));
  return std::unique_ptr<JobProcess>(
      std::make_unique<LocalProcess>(std::move(process), std::move(events)));
}

}  // namespace leeway
