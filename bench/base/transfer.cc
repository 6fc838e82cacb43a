#include "bench/base/transfer.h"

#include "absl/strings/str_cat.h"

namespace leeway {

const char* NameOf(TransferMethod method) {
  switch (method) {
    case TransferMethod::kPush:
      return "push";
    case TransferMethod::kPull:
      return "pull";
    case TransferMethod::kPushPull:
      return "push_pull";
  }
  return "";
}

const char* NameOf(Wire wire) {
  switch (wire) {
    case Wire::kAuto:
      return "auto";
    case Wire::kTcp:
      return "tcp";
    case Wire::kUnix:
      return "unix";
    case Wire::kShm:
      return "shm";
  }
  return "";
}

absl::StatusOr<TransferMethod> ParseMethod(const std::string& name) {
  for (const auto method :
       {TransferMethod::kPush, TransferMethod::kPull, TransferMethod::kPushPull}) {
    if (name == NameOf(method)) return method;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("method '", name, "': must be one of push, pull, push_pull"));
}

absl::StatusOr<Wire> ParseWire(const std::string& name) {
  for (const auto wire : {Wire::kAuto, Wire::kTcp, Wire::kUnix, Wire::kShm}) {
    if (name == NameOf(wire)) return wire;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("transport '", name, "': must be one of auto, tcp, unix, shm"));
}

}  // namespace leeway
