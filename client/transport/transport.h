// How a ParameterClient reaches its servers: requests, replies, and time. stream_transport.h is the
// real one; tests put one between that loses, doubles and delays
// (tests/client/fault_transport.h).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/read_kind.h"
#include "common/wire/payload.h"
#include "leeway/v1/job.pb.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// One block's request, or an attachment.
struct TransportRequest {
  enum class Kind { kAttach, kInitialize, kPush, kPull, kPushPull };
  Kind kind = Kind::kPull;
  // Of an attachment: job, generation, rank and incarnation, and for the block the shard's number.
  v1::ExchangeHeader header;
  // Of a pull.
  ReadKind reads = ReadKind::kAtClock;
  // Encoded as header.encoding says; by default float32.
  std::span<const uint8_t> payload = {};
  // Keeps the payload's memory for as long as anything of it is on its way; null: the caller does
  // (Transport::Call).
  std::shared_ptr<const void> payload_owner = nullptr;
  // Payload of the reply, at most.
  uint64_t reply_bytes = 0;

  // What it moves, in the direction that has more.
  uint64_t bytes() const { return std::max<uint64_t>(payload.size(), reply_bytes); }
  bool sends() const { return kind != Kind::kAttach && kind != Kind::kPull; }
  bool receives() const { return kind == Kind::kPull || kind == Kind::kPushPull; }
};

struct TransportReply {
  // Of an attachment.
  v1::AttachReply attach;
  // Of a pull.
  v1::VersionHeader version;
  // Encoded as version.encoding says. Valid until OnDone() returns.
  FloatPayload payload;
  // False: what was read from `payload` meanwhile is void (its memory was given up by the server).
  std::function<bool()> still_stands = nullptr;
};

// One attempt of a call. Its methods run on a thread of the transport's, or one that drives it, and
// never from within the call that began it.
class TransportCall {
 public:
  virtual ~TransportCall() = default;
  // The request has left the link behind it; the answer has to wait. Any number of times; not by
  // every transport.
  virtual void OnAccepted() {}
  // The answer has to wait, for what the server says is `missing`; or, where that is empty, the
  // link has been bringing other answers all the time. How much longer the attempt may take from
  // now on; nothing: it is to end, with UNAVAILABLE.
  virtual std::optional<Duration> OnMissing(const std::string& missing) { return std::nullopt; }
  // Exactly once. `reply` is empty unless the status is OK.
  virtual void OnDone(const absl::Status& status, const TransportReply& reply) = 0;
};

// Where a server is.
struct ServerEndpoint {
  ServerEndpoint(std::string address, std::string local_address = "", std::string host = "")
      : address(std::move(address)),
        local_address(std::move(local_address)),
        host(std::move(host)) {}
  ServerEndpoint(const char* address) : ServerEndpoint(std::string(address)) {}

  // host:port.
  std::string address;
  // For processes of the same host (HostIdentity()): unix-abstract:NAME; empty: none.
  std::string local_address;
  std::string host;
  bool operator==(const ServerEndpoint&) const = default;
};

// Thread-safe. Callers may hold no lock but need no stack.
class Transport {
 public:
  virtual ~Transport() = default;

  // DEADLINE_EXCEEDED after about `timeout`. Memory that the request's payload refers to, where it
  // has no owner, stays valid and unchanged until OnDone has run with OK, or until Close().
  virtual void Call(uint32_t server, const TransportRequest& request, Duration timeout,
                    std::shared_ptr<TransportCall> call) = 0;

  // Runs `callback` after `delay`; early once Cancel() was called.
  virtual void CallAfter(Duration delay, std::function<void()> callback) = 0;

  // Runs callbacks on this thread until done() or the deadline, where the transport can: a thread
  // that waits for an answer anyway need not be woken by another. done() is asked after each
  // callback.
  virtual void Drive(const std::function<bool()>& done, Time deadline) {}

  // Breaks off what is in flight, and whatever is begun later, with CANCELLED.
  virtual void Cancel() = 0;

  // Cancel(), and returns when every callback has returned. No call may begin afterwards.
  virtual void Close() = 0;

  // A zeroed vector that is sent from without copying.
  virtual FloatBuffer MakeVector(size_t floats) { return FloatBuffer(floats); }

  // From now on the server is there; what is under way to where it was breaks off (UNAVAILABLE or
  // CANCELLED). May be ignored by one that does not reach servers itself.
  virtual void MoveServer(uint32_t server, const ServerEndpoint& endpoint) {}

  // Requests to this server go through a link that is worth keeping short queues on.
  virtual bool HasLink(uint32_t server) const { return true; }

  virtual Time Now() const { return std::chrono::steady_clock::now(); }
};

struct TransportOptions {
  // By server index.
  std::vector<ServerEndpoint> servers;
  v1::TransportType type = v1::TRANSPORT_TYPE_AUTO;
  // To each server.
  uint32_t channels = 2;
  // Floats of the vectors that MakeVector will be asked for.
  uint64_t vector_floats = 0;
};

using TransportFactory = std::function<std::unique_ptr<Transport>(const TransportOptions& options)>;

}  // namespace leeway
