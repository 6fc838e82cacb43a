#include "library/process.h"

#include <chrono>
#include <mutex>

#include <unistd.h>

#include "common/command_line/security_flags.h"
#include "common/log.h"
#include "common/rpc/channel.h"
#include "common/rpc/host.h"
#include "common/rpc/transport_security.h"

namespace leeway {
absl::Status PrepareProcess() {
  static std::once_flag once;
  static absl::Status* const result = new absl::Status;
  std::call_once(once, [] {
    PrepareGrpc();
    *result = SetUpLog({.role = "worker", .file = ""});
    if (!result->ok()) return;
    auto security = SettingsOf(SecurityFlagsFromEnvironment(), {}, EndOfCalls::kCalls);
    *result = security.status();
    if (security.ok()) SetProcessSecurity(*std::move(security));
  });
  return *result;
}

CoordinatorSession::Options SessionOptions(const std::string& address, uint64_t nonce,
                                           CallBreaker& breaker) {
  return {.address = address,
          .host = HostName(),
          .network = NetworkIdentity(),
          .pid = static_cast<uint32_t>(getpid()),
          .nonce = nonce,
          .sleep = [&breaker](Duration time) { breaker.Pause(time); },
          .now =
              [&breaker] {
                const Time now = std::chrono::steady_clock::now();
                return breaker.broken() ? now + std::chrono::hours(24 * 365) : now;
              },
          .registrations = &breaker};
}

}  // namespace leeway
