#include "tests/sim/message.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace leeway::sim {

std::string NodeName(NodeId node) {
  if (node < kServer0) return absl::StrCat("worker ", node);
  if (node < kCoordinator) return absl::StrCat("server ", node - kServer0);
  return "coordinator";
}

const char* KindName(Kind kind) {
  static constexpr const char* kNames[] = {"Attach",
                                           "Initialize",
                                           "Push",
                                           "PushPull",
                                           "Pull",
                                           "PullLatest",
                                           "Register",
                                           "StopAt",
                                           "Leave",
                                           "State",
                                           "Heartbeat",
                                           "reply",
                                           "heartbeat reply",
                                           "RegisterServer",
                                           "ServerHeartbeat",
                                           "ShardSaved",
                                           "ContributionsHeld",
                                           "command done",
                                           "gone",
                                           "command",
                                           "Replicate",
                                           "replicated",
                                           "stream broken",
                                           "applied",
                                           "server tick",
                                           "worker tick",
                                           "coordinator tick",
                                           "manifest",
                                           "wake",
                                           "START",
                                           "CRASH",
                                           "REPLACE",
                                           "LEAVE",
                                           "PAUSE",
                                           "PARTITION",
                                           "HEAL",
                                           "STOP JOB",
                                           "KILL",
                                           "START SERVER",
                                           "KILL COORDINATOR",
                                           "RESIZE",
                                           "DRAIN",
                                           "DEAF",
                                           "HUSH"};
  return kNames[static_cast<int>(kind)];
}

Message Timer(Kind kind, NodeId node) {
  Message timer;
  timer.kind = kind;
  timer.from = timer.to = node;
  return timer;
}

Message ReplyTo(const Message& request, absl::StatusCode code) {
  Message reply = request;
  reply.kind = request.kind == Kind::kHeartbeat ? Kind::kHeartbeatReply : Kind::kReply;
  reply.answers = request.kind;
  std::swap(reply.from, reply.to);
  reply.code = code;
  reply.flag = false;
  return reply;
}

namespace {

std::string Contents(const Version& version) {
  std::string text = absl::StrCat(" version ", version.number, " [");
  for (const uint64_t clocks : version.clocks) absl::StrAppend(&text, " ", absl::Hex(clocks));
  return text + " ]";
}

}  // namespace

std::string Describe(const Message& message) {
  static constexpr const char* kOrders[] = {"Configure", "SetLive", "CommitSet", "Save",
                                            "Shutdown"};
  std::string text = absl::StrFormat("%s -> %s: %s", NodeName(message.from), NodeName(message.to),
                                     KindName(message.kind));
  const bool request = message.kind <= Kind::kReply;
  if (request) {
    absl::StrAppend(&text, " rank ", message.rank, " incarnation ", message.incarnation,
                    " generation ", message.generation, " block ", message.block, " clock ",
                    message.clock, " life ", message.life, " attempt ", message.attempt);
  }
  if (message.kind == Kind::kReply) {
    absl::StrAppend(&text, " ", absl::StatusCodeToString(message.code),
                    message.duplicate ? " duplicate" : "", Contents(message.version));
  }
  if (message.kind == Kind::kCommand || message.kind == Kind::kCommandDone) {
    absl::StrAppend(&text, " #", message.sequence, " ", kOrders[static_cast<int>(message.order)],
                    " rank ", message.rank, message.flag ? " live" : "", " clock ", message.clock,
                    " generation ", message.generation);
    if (message.order == Order::kCommit)
      absl::StrAppend(&text, " ranks ", absl::Hex(message.value));
  }
  if (message.kind == Kind::kHeld) {
    absl::StrAppend(&text, " shard ", message.block, " clock ", message.clock, " generation ",
                    message.generation, " ranks ", absl::Hex(message.value),
                    message.flag ? " again" : "");
  }
  const bool replicates = message.kind >= Kind::kReplicate && message.kind <= Kind::kBroken;
  if (replicates) {
    absl::StrAppend(&text, " stream ", message.sequence, " block ", message.block, " since ",
                    message.stop_at, " ", absl::StatusCodeToString(message.code),
                    Contents(message.version));
  }
  if (message.kind == Kind::kApplied) absl::StrAppend(&text, " block ", message.block);
  return text;
}

}  // namespace leeway::sim
