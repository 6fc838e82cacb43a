#include "launcher/supervision/children.h"

#include <algorithm>
#include <utility>

#include <signal.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {

Children::Children(const SupervisorSpec& spec, JobHosts& hosts)
    : spec_(spec), hosts_(hosts), all_(size_t{spec.servers} + spec.workers) {
  for (size_t i = 0; i < all_.size(); ++i) {
    all_[i].server = i < spec_.servers;
    all_[i].number = static_cast<uint32_t>(i < spec_.servers ? i : i - spec_.servers);
  }
}

Child& Children::Server(uint32_t index) {
  const auto found = std::find_if(all_.begin(), all_.end(), [index](const Child& each) {
    return each.server && each.number == index;
  });
  if (found != all_.end()) return *found;
  Child& added = all_.emplace_back();
  added.server = true;
  added.number = index;
  return added;
}

absl::Status Children::Start(Child& child) {
  child.restart_at.reset();
  Launch launch = child.server ? ServerLaunch(child.number) : WorkerLaunch(child.number);
  launch.server = child.server;
  launch.holds_blocks = child.server || spec_.workers_serve;
  launch.number = child.number;
  launch.log_file = LogFile(child);
  ASSIGN_OR_RETURN(child.process, hosts_.Start(launch));
  return absl::OkStatus();
}

std::string Children::LogFile(const Child& child) const {
  return absl::StrCat(spec_.local_dir, "/logs/", child.server ? "server-" : "worker-", child.number,
                      ".log");
}

Launch Children::ServerLaunch(uint32_t index) const {
  const bool first = coordinator_.empty();
  const bool coordinator = index == 0;
  // All processes know server 0 by its address, so a restarted server 0 keeps the address.
  const std::string listen = coordinator && !first ? coordinator_ : hosts_.ServerListens(index);
  Launch launch{.arguments = {"--index", std::to_string(index), "--listen", listen},
                .environment = spec_.server_environment,
                .announces_ready = coordinator && first};
  auto& arguments = launch.arguments;
  if (coordinator) {
    arguments.insert(arguments.end(), {"--job", spec_.run_dir + "/job.yaml", "--run-dir",
                                       spec_.run_dir, "--no-outcome"});
    // A restarted server continues the job that the first process began.
    if (spec_.resume && first) arguments.push_back("--resume");
  } else {
    arguments.insert(arguments.end(), {"--coordinator", coordinator_});
  }
  return launch;
}

Launch Children::WorkerLaunch(uint32_t rank) const {
  Environment environment = spec_.worker_environment;
  if (spec_.workers_serve) environment.emplace_back("LEEWAY_LISTEN", hosts_.WorkerListens(rank));
  if (!spec_.worker_command.empty()) {
    Launch launch{.command = spec_.worker_command, .environment = std::move(environment)};
    launch.environment.emplace_back("LEEWAY_COORDINATOR", coordinator_);
    launch.environment.emplace_back("LEEWAY_RANK", std::to_string(rank));
    return launch;
  }
  Launch launch{.arguments = {"--coordinator", coordinator_, "--rank", std::to_string(rank),
                              "--data", spec_.data_dir},
                .environment = std::move(environment)};
  if (rank < spec_.worker_processors.size()) {
    launch.arguments.insert(launch.arguments.end(),
                            {"--processors", spec_.worker_processors[rank]});
  }
  return launch;
}

bool Children::Any() const {
  return std::any_of(all_.begin(), all_.end(), [](const Child& child) {
    return child.process != nullptr || child.restart_at.has_value();
  });
}

Time Children::NextRestart(Time latest) const {
  for (const Child& child : all_) latest = std::min(latest, child.restart_at.value_or(latest));
  return latest;
}

void Children::CancelRestarts() {
  for (Child& child : all_) child.restart_at.reset();
}

void Children::EndAll() {
  for (Child& child : all_) {
    if (child.process != nullptr) child.process->Signal(child.server ? SIGINT : SIGTERM);
  }
}

void Children::SignalAll(int signal) {
  for (Child& child : all_) {
    if (child.process != nullptr) child.process->Signal(signal);
  }
}

}  // namespace leeway
