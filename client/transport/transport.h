// How a ParameterClient reaches its servers: requests, replies and time. stream_transport.h is the
// real transport. Tests put one in between that loses, doubles and delays calls
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

// A request for one block, or an attachment.
struct TransportRequest {
  enum class Kind { kAttach, kInitialize, kPush, kPull, kPushPull };
  Kind kind = Kind::kPull;
  // For an attachment it has job, generation, rank and incarnation, and the shard's number as the
  // block.
  v1::ExchangeHeader header;
  // For a pull.
  ReadKind reads = ReadKind::kAtClock;
  // Encoded as header.encoding says. The default is float32.
  std::span<const uint8_t> payload = {};
  // Keeps the payload's memory as long as any of it is in flight. Null: the caller keeps it
  // (Transport::Call).
  std::shared_ptr<const void> payload_owner = nullptr;
  // The largest payload of the reply.
  uint64_t reply_bytes = 0;

  // The bytes that it moves, in the direction that has more.
  uint64_t bytes() const { return std::max<uint64_t>(payload.size(), reply_bytes); }
  bool sends() const { return kind != Kind::kAttach && kind != Kind::kPull; }
  bool receives() const { return kind == Kind::kPull || kind == Kind::kPushPull; }
};

struct TransportReply {
  // For an attachment.
  v1::AttachReply attach;
  // For a pull.
  v1::VersionHeader version;
  // Encoded as version.encoding says. Valid until OnDone() returns.
  FloatPayload payload;
  // False: the server has given up the memory of `payload`, and what was read from it is void.
  std::function<bool()> still_stands = nullptr;
};

// One attempt of a call. Its methods run on a thread of the transport, or on one that drives it.
// They never run from within the call that began the attempt.
class TransportCall {
 public:
  virtual ~TransportCall() = default;
  // The request has crossed the link, and the answer has to wait. May be called any number of
  // times. Not every transport calls it.
  virtual void OnAccepted() {}
  // The answer has to wait for what the server says is `missing`. If `missing` is empty, the link
  // has brought other answers all the time. Returns how much longer the attempt may take from now
  // on. Nothing: the attempt ends with UNAVAILABLE.
  virtual std::optional<Duration> OnMissing(const std::string& missing) { return std::nullopt; }
  // Called exactly once. `reply` is empty unless the status is OK.
  virtual void OnDone(const absl::Status& status, const TransportReply& reply) = 0;
};

// The addresses of a server.
struct ServerEndpoint {
  ServerEndpoint(std::string address, std::string local_address = "", std::string host = "")
      : address(std::move(address)),
        local_address(std::move(local_address)),
        host(std::move(host)) {}
  ServerEndpoint(const char* address) : ServerEndpoint(std::string(address)) {}

  // The address as host:port.
  std::string address;
  // For processes of the same host (HostIdentity()), as unix-abstract:NAME. Empty if the server has none.
  std::string local_address;
  std::string host;
  bool operator==(const ServerEndpoint&) const = default;
};

// Thread-safe. Callers must hold no lock. Callbacks never run from within a call.
class Transport {
 public:
  virtual ~Transport() = default;

  // The call ends with DEADLINE_EXCEEDED after about `timeout`. If the request's payload has no
  // owner, its memory stays valid and unchanged until OnDone has run with OK, or until Close().
  virtual void Call(uint32_t server, const TransportRequest& request, Duration timeout,
                    std::shared_ptr<TransportCall> call) = 0;

  // Runs `callback` after `delay`, or earlier once Cancel() was called.
  virtual void CallAfter(Duration delay, std::function<void()> callback) = 0;

  // Runs callbacks on this thread until done() or the deadline, if the transport can do that. A
  // thread that waits for an answer anyway then need not be woken by another. done() is asked after
  // each callback.
  virtual void Drive(const std::function<bool()>& done, Time deadline) {}

  // Breaks off calls in flight and all later ones, with CANCELLED.
  virtual void Cancel() = 0;

  // Cancels, and returns when every callback has returned. No call may begin afterwards.
  virtual void Close() = 0;

  // A zeroed vector from which the transport sends without copying.
  virtual FloatBuffer MakeVector(size_t floats) { return FloatBuffer(floats); }

  // From now on the server is at `endpoint`. Calls in flight to its old address break off
  // (UNAVAILABLE or CANCELLED). A transport that does not reach servers itself may ignore this.
  virtual void MoveServer(uint32_t server, const ServerEndpoint& endpoint) {}

  // True if requests to this server cross a link on which queues should be kept short.
  virtual bool HasLink(uint32_t server) const { return true; }

  virtual Time Now() const { return std::chrono::steady_clock::now(); }
};

struct TransportOptions {
  // By server index.
  std::vector<ServerEndpoint> servers;
  v1::TransportType type = v1::TRANSPORT_TYPE_AUTO;
  // Channels to each server.
  uint32_t channels = 2;
  // The size of the vectors that MakeVector will be asked for, in floats.
  uint64_t vector_floats = 0;
};

using TransportFactory = std::function<std::unique_ptr<Transport>(const TransportOptions& options)>;

}  // namespace leeway
