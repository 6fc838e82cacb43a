#include "common/service/doorkeeper.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

// The maximum number of log lines, for any number of hosts and reasons.
constexpr size_t kLinesMax = 1000;

}  // namespace

absl::StatusOr<Caller> Doorkeeper::Admit(const grpc::ServerContext& context,
                                         const CalledMethod& method) {
  absl::StatusOr<Caller> caller = gate_.Admit(FactsOf(context), method.callers, method.name);
  if (!caller.ok()) {
    Log(caller.status(), HostOfPeer(context.peer()));
  } else if (connections_ != nullptr) {
    connections_->LetIn(context.peer());
  }
  return caller;
}

void Doorkeeper::Log(const absl::Status& refusal, const std::string& host) {
  const std::string line = absl::StrCat("refused a call from ", host, ": ", refusal.message());
  {
    MutexLock lock(mutex_);
    if (logged_.size() >= kLinesMax || !logged_.insert(line).second) return;
  }
  spdlog::warn("{}", line);
}

}  // namespace leeway
