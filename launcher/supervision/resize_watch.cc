#include "launcher/supervision/resize_watch.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"

namespace leeway {
namespace {

std::string ServersNamed(const std::vector<std::string>& indices) {
  return absl::StrCat(indices.size() > 1 ? "servers " : "server ", absl::StrJoin(indices, ", "));
}

// Returns the steps that are still to come, or an empty string if the resize is done.
std::string Pending(const v1::JobStatus& status, uint32_t servers) {
  std::vector<std::string> absent, leaving;
  for (const v1::ServerStatus& server : status.servers()) {
    const bool here = server.state() == "registered" || server.state() == "ready";
    if (server.index() < servers && !here) absent.push_back(absl::StrCat(server.index()));
    if (server.index() >= servers && here) leaving.push_back(absl::StrCat(server.index()));
  }
  std::vector<std::string> parts;
  if (status.shards_to_move() > 0) {
    parts.push_back(absl::StrCat("shards to move: ", status.shards_to_move()));
  }
  if (!absent.empty()) parts.push_back("waiting for " + ServersNamed(absent));
  if (!leaving.empty()) parts.push_back("to leave: " + ServersNamed(leaving));
  return absl::StrJoin(parts, "; ");
}

std::string And(const std::string& what, const std::string& why) {
  return why.empty() ? what : absl::StrCat(what, ": ", why);
}

}  // namespace

absl::StatusOr<ResizeWatch::Step> ResizeWatch::OnStatus(const v1::JobStatus& status) {
  if (status.state() == v1::JOB_STARTING) {
    interrupted_ = true;
    return Step{.pending = And("the coordinator was started again", status.message())};
  }
  if (status.state() == v1::JOB_STOPPING) {
    return absl::FailedPreconditionError(And("the job is being stopped", status.message()));
  }
  if (status.state() != v1::JOB_RUNNING) {
    return absl::FailedPreconditionError(And("the job is over", status.message()));
  }
  if (status.servers_wanted() != servers_) {
    if (interrupted_ && status.servers_wanted() == before_) {
      interrupted_ = false;
      return Step{.ask_again = true,
                  .pending = "the coordinator was started again before the request was recorded"};
    }
    return absl::AbortedError(
        absl::StrCat("somebody has since asked for ", Counted(status.servers_wanted(), "server")));
  }
  interrupted_ = false;
  Step step{.pending = Pending(status, servers_)};
  step.done = step.pending.empty();
  return step;
}

ResizeWatch::Step ResizeWatch::OnSilence(const absl::Status& why) {
  interrupted_ = true;
  return {.pending = absl::StrCat("waiting for the coordinator: ", why.message())};
}

}  // namespace leeway
