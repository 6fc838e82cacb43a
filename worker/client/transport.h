// How a ParameterClient reaches its servers: bytes, and time. grpc_transport.h is the real one;
// tests put one between that loses, doubles and delays (tests/worker/client/fault_transport.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/clock.h"

namespace grpc {
class ByteBuffer;
}

namespace leeway {

// Thread-safe. A callback runs exactly once, whatever happens, on a thread of the transport's and
// never from within the call that was given it, so that callers may hold no lock but need no stack.
class Transport {
 public:
  // `reply` is empty unless the status is OK.
  using Done = std::function<void(absl::Status status, grpc::ByteBuffer reply)>;

  virtual ~Transport() = default;

  // One request, one reply, with `method` as in "/leeway.v1.ParameterServer/Push".
  // DEADLINE_EXCEEDED after `timeout`. Memory that the request's slices refer to stays valid until
  // `done` has run with OK, or until Close().
  virtual void CallUnary(uint32_t server, const std::string& method,
                         const grpc::ByteBuffer& request, Duration timeout, Done done) = 0;

  // Runs `callback` after `delay`; early once Cancel() was called.
  virtual void CallAfter(Duration delay, std::function<void()> callback) = 0;

  // Breaks off what is in flight, and whatever is begun later, with CANCELLED.
  virtual void Cancel() = 0;

  // Cancel(), and returns when every callback has returned. No call may begin afterwards.
  virtual void Close() = 0;

  virtual Time Now() const { return std::chrono::steady_clock::now(); }
};

// Makes a transport to servers by index, host:port each.
using TransportFactory =
    std::function<std::unique_ptr<Transport>(const std::vector<std::string>& servers)>;

}  // namespace leeway
