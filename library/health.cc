#include "library/health.h"

#include "common/address.h"
#include "common/environment.h"
#include "common/rpc/health_port.h"
#include "common/status.h"
#include "library/process.h"

namespace leeway {
namespace {

constexpr char kHealthVariable[] = "LEEWAY_HEALTH";

absl::Status Open(const std::string& address) {
  RETURN_IF_ERROR(Annotate(SplitAddress(address).status(), kHealthVariable));
  ASSIGN_OR_RETURN(auto port, HealthPort::Start(address));
  // The port stays open until the process ends.
  port.release();
  return absl::OkStatus();
}

}  // namespace

absl::Status OpenHealthPort() {
  const auto address = LookUpEnvironment(kHealthVariable);
  if (!address) return absl::OkStatus();
  RETURN_IF_ERROR(PrepareProcess());
  static const absl::Status* const result = new absl::Status(Open(*address));
  return *result;
}

}  // namespace leeway
