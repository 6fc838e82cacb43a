#include "launcher/supervision/supervisor.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <signal.h>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/files/files.h"
#include "common/status.h"
#include "launcher/supervision/log_tail.h"

namespace leeway {
namespace {

// The time for a failing job to end by itself.
constexpr Duration kOrderlyGrace = std::chrono::seconds(20);
// The time from the signal to end in order to SIGKILL, after a failure.
constexpr Duration kEndGrace = std::chrono::seconds(5);
// The time for workers that still run when the servers have ended.
constexpr Duration kWorkerGrace = std::chrono::seconds(15);
// The time for such workers after Ctrl-C. It is shorter, because a person waits, and because a
// worker that still runs has missed the stop.
constexpr Duration kStoppedGrace = std::chrono::seconds(3);
// Several signals within this time count as one request. For example, timeout(1) signals both a
// process and its group.
constexpr Duration kSameRequest = std::chrono::seconds(1);
// The number of lines from a crashed process's log that follow a message.
constexpr size_t kLogLines = 8;

Time Now() { return std::chrono::steady_clock::now(); }

// Appends the last line of a log, such as a script's exception, to `reason`.
std::string WithLastLine(const std::string& reason, const std::string& last_line) {
  return last_line.empty() ? reason : absl::StrCat(reason, "; its last line: ", last_line);
}

}  // namespace

Supervisor::Supervisor(SupervisorSpec spec, JobHosts& hosts, SignalSource& signals,
                       RunObserver& observer)
    : spec_(std::move(spec)),
      signals_(signals),
      observer_(observer),
      policy_(spec_.servers, spec_.workers, spec_.restarts),
      watchdog_(
          {.lease = FromSeconds(spec_.lease_seconds), .start = FromSeconds(spec_.start_seconds)}),
      children_(spec_, hosts) {
  view_.restarts.assign(spec_.workers, 0);
}

absl::StatusOr<RunOutcome> Supervisor::Run() {
  start_deadline_ = Now() + FromSeconds(spec_.start_seconds);
  RETURN_IF_ERROR(Start(children_.first_server()));
  while (Running()) RETURN_IF_ERROR(Wait());
  outcome_.worker_restarts = policy_.worker_restarts();
  outcome_.server_restarts = policy_.server_restarts();
  return std::move(outcome_);
}

absl::Status Supervisor::Start(Child& child) {
  RETURN_IF_ERROR(children_.Start(child));
  WatchCoordinator();
  return absl::OkStatus();
}

void Supervisor::WatchCoordinator() {
  const JobProcess* process = children_.first_server().process.get();
  if (coordinator_ == nullptr || process == nullptr || process->pid() == watched_) return;
  watched_ = process->pid();
  watchdog_.CoordinatorBegins(watched_, Now());
}

absl::Status Supervisor::StartTheRest(const std::string& coordinator) {
  children_.SetCoordinator(coordinator);
  RETURN_IF_ERROR(WriteFileAtomically(spec_.local_dir + "/coordinator", coordinator + "\n"));
  ASSIGN_OR_RETURN(coordinator_, CoordinatorClient::Connect(coordinator));
  WatchCoordinator();
  for (Child& child : children_.all()) {
    if (child.process == nullptr && !child.restart_at) RETURN_IF_ERROR(Start(child));
  }
  observer_.OnEvent(absl::StrCat("started ", Counted(spec_.servers, "server"), " and ",
                                 Counted(spec_.workers, "worker"), "; coordinator at ",
                                 coordinator));
  return absl::OkStatus();
}

bool Supervisor::Running() const {
  if (children_.first_server().elsewhere && !job_over_ && outcome_.failure.empty()) return true;
  return children_.Any();
}

int Supervisor::PollMilliseconds(Time now) const {
  Time due = now + std::chrono::seconds(60);
  if (coordinator_ != nullptr) {
    due = std::min(due, next_status_);
  } else if (outcome_.failure.empty() && !job_over_) {
    // Once the run has failed, this deadline no longer matters.
    due = std::min(due, start_deadline_);
  }
  if (end_at_.has_value()) due = std::min(due, *end_at_);
  if (kill_at_.has_value()) due = std::min(due, *kill_at_);
  due = children_.NextRestart(due);
  // Rounded up, so that the timer is due when poll returns.
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - now).count();
  return static_cast<int>(std::max<int64_t>(0, left));
}

absl::Status Supervisor::Wait() {
  std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0}};
  fds.push_back({coordinator_ == nullptr ? -1 : coordinator_->fd(), POLLIN, 0});
  for (const Child& child : children_.all()) {
    fds.push_back({child.process == nullptr ? -1 : child.process->fd(), POLLIN, 0});
  }
  if (poll(fds.data(), fds.size(), PollMilliseconds(Now())) < 0 && errno != EINTR) {
    return absl::InternalError(absl::StrCat("poll: ", strerror(errno)));
  }
  while (const int signal = fds[0].revents != 0 ? signals_.Next() : 0) OnSignal(signal);
  if (fds[1].revents != 0) TakeStatus();
  for (size_t i = 0; i < children_.all().size(); ++i) {
    if (fds[2 + i].revents != 0) RETURN_IF_ERROR(OnNews(children_.all()[i]));
  }
  return RunTimers(Now());
}

absl::Status Supervisor::RunTimers(Time now) {
  if (end_at_.has_value() && now >= *end_at_) {
    children_.EndAll();
    end_at_.reset();
    kill_at_ = now + kEndGrace;
  }
  if (kill_at_.has_value() && now >= *kill_at_) {
    children_.SignalAll(SIGKILL);
    kill_at_.reset();
  }
  for (Child& child : children_.all()) {
    if (child.restart_at.has_value() && now >= *child.restart_at) {
      RETURN_IF_ERROR(Start(child));
    }
  }
  if (coordinator_ == nullptr) {
    if (now >= start_deadline_ && outcome_.failure.empty() && !job_over_) {
      Fail(absl::StrCat(
               "server 0 did not listen within ", spec_.start_seconds,
               " s (limits.start_seconds); its log: ", children_.LogFile(children_.first_server())),
           "", Duration::zero());
    }
    return absl::OkStatus();
  }
  if (now >= next_status_) {
    coordinator_->AskStatus();
    next_status_ = now + spec_.status_every;
    const bool unseen = children_.first_server().elsewhere && !job_over_;
    if (unseen && spec_.over_on_record && spec_.over_on_record()) JobIsOver();
  }
  Kill(watchdog_.Check(now));
  return StartWantedServers();
}

absl::Status Supervisor::StartWantedServers() {
  const bool open = !job_over_ && outcome_.failure.empty() && !spec_.workers_serve;
  for (uint32_t index = 0; open && index < servers_wanted_.value_or(0); ++index) {
    Child& child = children_.Server(index);
    if (child.process != nullptr || child.restart_at.has_value() || child.elsewhere) continue;
    if (IsSomebodys(child)) {
      // The server was started by hand or elsewhere, which is possible in a job with servers.max.
      child.elsewhere = true;
      observer_.OnEvent(absl::StrCat(
          "server ", index, " was started by hand or elsewhere; it is not restarted here"));
      continue;
    }
    RETURN_IF_ERROR(Start(child));
    observer_.OnEvent(absl::StrCat("started server ", index));
  }
  return absl::OkStatus();
}

bool Supervisor::IsSomebodys(const Child& server) const {
  const auto& servers = outcome_.status->servers();
  return std::any_of(servers.begin(), servers.end(), [&server](const v1::ServerStatus& each) {
    const bool is_there = each.state() == "registered" || each.state() == "ready";
    return each.index() == server.number && is_there &&
           static_cast<pid_t>(each.pid()) != server.done_pid;
  });
}

void Supervisor::OnSignal(int signal) {
  if (signal == SIGWINCH) {
    observer_.OnResize();
    return;
  }
  const char* name = signal == SIGINT ? "Ctrl-C" : strsignal(signal);
  const bool first = !outcome_.stop_requested && outcome_.failure.empty();
  if (first && coordinator_ == nullptr) {
    observer_.OnEvent(absl::StrCat(name, ": stopped before the job began"));
    outcome_.stop_requested = job_over_ = true;
    children_.first_server().restart_at.reset();
    children_.SignalAll(SIGKILL);
    return;
  }
  if (!first && signal == SIGTERM && Now() - stop_asked_at_ < kSameRequest) return;
  if (!first) {
    observer_.OnEvent(absl::StrCat(name, ": killing the job's processes"));
    if (outcome_.failure.empty()) outcome_.failure = absl::StrCat("killed by ", name);
    children_.CancelRestarts();
    children_.SignalAll(SIGKILL);
    return;
  }
  outcome_.stop_requested = true;
  stop_asked_at_ = Now();
  view_.notice = "Stopping in order, with a checkpoint. Ctrl-C again kills the job.";
  observer_.OnEvent(
      absl::StrCat(name, ": stopping in order, with a checkpoint; a second signal kills the job"));
  coordinator_->RequestStop(absl::StrCat(name, " at the launcher"));
}

void Supervisor::TakeStatus() {
  std::optional<v1::JobStatus> status = coordinator_->TakeStatus();
  if (!status.has_value()) return;
  outcome_.status = std::move(status);
  servers_wanted_.reset();
  // A restarted coordinator that waits for all processes also reports such a state.
  if (outcome_.status->state() <= v1::JOB_RUNNING) {
    servers_wanted_ = outcome_.status->servers_wanted();
    for (Child& child : children_.all()) {
      // If a server that has left is wanted again, this launcher starts it.
      if (child.server && child.number >= *servers_wanted_) child.elsewhere = false;
    }
  }
  observer_.OnStatus(Now(), *outcome_.status, view_);
  LookAfterDone();
  Kill(watchdog_.Answered(*outcome_.status, Now()));
}

void Supervisor::LookAfterDone() {
  began_ = began_ || outcome_.status->state() != v1::JOB_STARTING;
  if (spec_.worker_command.empty() || !outcome_.failure.empty() || job_over_) return;
  for (Child& child : children_.all()) {
    // The first answer does not count, because its request may have been sent before the worker
    // ended.
    if (!child.answers_since_done || ++*child.answers_since_done < 2) continue;
    if (began_) {
      if (!HasNotLeft(child)) continue;
      child.answers_since_done.reset();
      OnWorkerExit(child, {.code = kExitTemporary, .words = "exit code 0 before the job's end"});
      continue;
    }
    outcome_.exit_code = kExitPermanent;
    return Fail(absl::StrCat("worker ", child.number,
                             " ended with exit code 0 before the job began: its program has not "
                             "joined the job (leeway.join, leeway_join)"),
                LogTail(children_.LogFile(child), kLogLines), Duration::zero());
  }
}

bool Supervisor::HasNotLeft(const Child& worker) const {
  if (outcome_.status->state() != v1::JOB_RUNNING) return false;
  for (const v1::WorkerStatus& status : outcome_.status->workers()) {
    if (status.rank() != worker.number) continue;
    // If a script has started the program, this launcher does not know the program's process id.
    const bool was_it = static_cast<pid_t>(status.pid()) == worker.done_pid;
    return status.state() == "lost" || (status.state() == "running" && was_it);
  }
  return false;
}

void Supervisor::Kill(const std::vector<Watchdog::Hung>& hung) {
  if (job_over_ || !outcome_.failure.empty()) return;
  for (const auto& [life, why] : hung) {
    for (Child& child : children_.all()) {
      const bool it = child.process != nullptr && child.server == life.server &&
                      child.number == life.number && child.process->Includes(life.pid);
      // Do not kill a process that a person is debugging.
      if (!it || child.process->Traced()) continue;
      observer_.OnEvent(absl::StrCat(child.process->name(), " (process ", life.pid,
                                     ") is running but does not respond: ", why,
                                     "; killing it to start it again"));
      child.process->Signal(SIGKILL);
    }
  }
}

absl::Status Supervisor::OnNews(Child& child) {
  if (child.process == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const JobProcess::News news, child.process->TakeNews());
  WatchCoordinator();
  if (news.ready.has_value()) RETURN_IF_ERROR(OnReady(*news.ready));
  if (news.exit.has_value()) OnExit(child, *news.exit);
  return absl::OkStatus();
}

absl::Status Supervisor::OnReady(const std::string& address) {
  if (!outcome_.failure.empty() || job_over_) return absl::OkStatus();
  return StartTheRest(address);
}

void Supervisor::OnExit(Child& child, const ExitStatus& exit) {
  child.done_pid = child.process->pid();
  child.process.reset();
  if (&child == &children_.first_server()) {
    watchdog_.CoordinatorEnds();
    watched_ = 0;
  }
  // Do nothing if the job is already ending, because this exit does not change the outcome.
  if (!outcome_.failure.empty() || job_over_) return;
  child.server ? OnServerExit(child, exit) : OnWorkerExit(child, exit);
}

void Supervisor::OnWorkerExit(Child& child, const ExitStatus& exit) {
  const RestartPolicy::Decision decision = policy_.OnWorkerExit(child.number, exit, Now());
  view_.restarts = policy_.worker_restarts();
  if (decision.action == RestartPolicy::Action::kDone) {
    child.answers_since_done = 0;
    return;
  }
  if (decision.action == RestartPolicy::Action::kRestart) {
    RestartAfter(child, exit, decision);
    return;
  }
  if (decision.action == RestartPolicy::Action::kLeave ||
      decision.action == RestartPolicy::Action::kReplaced) {
    observer_.OnEvent(decision.reason);
    return;
  }
  // A worker that has joined tells the coordinator why it leaves, and the job then ends in order.
  const bool told = !exit.signaled && exit.code == kExitPermanent && outcome_.status.has_value() &&
                    outcome_.status->state() != v1::JOB_STARTING;
  FailAfter(child, exit, decision.reason, told ? kOrderlyGrace : Duration::zero());
}

void Supervisor::OnServerExit(Child& child, const ExitStatus& exit) {
  const RestartPolicy::Decision decision = policy_.OnServerExit(child.number, exit, Now());
  const bool done = decision.action == RestartPolicy::Action::kDone;
  const bool removed = outcome_.status.has_value() && child.number > 0 &&
                       child.number >= outcome_.status->servers_wanted();
  // Server 0 ends in order only when the whole job is over.
  if (done && child.number == 0) return JobIsOver();
  if (done || (removed && decision.action == RestartPolicy::Action::kFail)) {
    // The server ended with the job, or because fewer servers are wanted. Forget the number of
    // wanted servers, because it may be from before this change.
    servers_wanted_.reset();
    if (removed) observer_.OnEvent(absl::StrCat("server ", child.number, " has left the job"));
    return;
  }
  if (decision.action == RestartPolicy::Action::kReplaced) {
    observer_.OnEvent(decision.reason);
    child.elsewhere = true;
    return;
  }
  if (decision.action == RestartPolicy::Action::kRestart) {
    RestartAfter(child, exit, decision);
    return;
  }
  FailAfterServer(child, exit, decision.reason);
}

void Supervisor::FailAfterServer(const Child& server, const ExitStatus& exit,
                                 const std::string& reason) {
  const bool lasting = !exit.signaled && exit.code == kExitPermanent;
  // Server 0 exits with this code when it has ended the job because one of the job's processes
  // failed.
  if (server.number == 0 && exit.code == kExitPermanent && began_) {
    return FailAfter(server, exit, "the job has failed, and server 0 has ended it",
                     Duration::zero());
  }
  // After a permanent failure, server 0 has told the other processes to end, so give them time.
  FailAfter(server, exit, reason, lasting && server.number > 0 ? kOrderlyGrace : Duration::zero());
}

void Supervisor::JobIsOver() {
  job_over_ = true;
  children_.CancelRestarts();
  const Duration grace = outcome_.stop_requested ? kStoppedGrace : kWorkerGrace;
  if (!kill_at_.has_value()) kill_at_ = Now() + grace;
}

void Supervisor::Fail(const std::string& reason, const std::string& details, Duration patience,
                      const std::string& last_line) {
  outcome_.failure = reason + details;
  observer_.OnEvent(WithLastLine(reason, last_line));
  children_.CancelRestarts();
  end_at_ = Now() + patience;
}

void Supervisor::RestartAfter(Child& child, const ExitStatus& exit,
                              const RestartPolicy::Decision& decision) {
  const std::string last = LastLineOf(child, exit);
  const bool again = !child.server && !began_ && !last.empty() && last == child.last_line;
  child.last_line = last;
  if (again && !spec_.worker_command.empty()) {
    const std::string reason = absl::StrCat("worker ", child.number, " crashed with ",
                                            exit.ToString(), " twice before it joined the job");
    FailAfter(child, {.code = kExitPermanent}, reason, Duration::zero());
    return;
  }
  observer_.OnEvent(WithLastLine(decision.reason, last));
  child.restart_at = Now() + decision.delay;
}

std::string Supervisor::LastLineOf(const Child& child, const ExitStatus& exit) const {
  return exit.signaled || exit.code == 0 ? "" : LastLine(children_.LogFile(child));
}

void Supervisor::FailAfter(const Child& child, const ExitStatus& exit, const std::string& reason,
                           Duration patience) {
  const bool lasting = !exit.signaled && (exit.code == kExitUsage || exit.code == kExitPermanent);
  outcome_.exit_code = lasting ? exit.code : kExitTemporary;
  Fail(reason, LogTail(children_.LogFile(child), kLogLines), patience, LastLineOf(child, exit));
}

}  // namespace leeway
