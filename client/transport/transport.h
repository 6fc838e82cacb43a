// The interface through which a ParameterClient reaches its servers. It carries requests and
// replies, and runs callbacks after a delay. stream_transport.h is the real transport. Tests wrap
// it in a transport that loses, doubles and delays calls (tests/client/fault_transport.h).
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
  enum class Kind { kAttach, kInitialize, kPush, kPull, kPushPull, kFetch, kMeet };
  Kind kind = Kind::kPull;
  // The header of an attachment has job, generation, rank and incarnation, and in `block` the
  // shard's number.
  v1::ExchangeHeader header;
  // Which values a pull reads.
  ReadKind reads = ReadKind::kAtClock;
  // For a fetch.
  v1::Piece piece = v1::PIECE_SUM;
  // The values, encoded as header.encoding specifies. The default is float32.
  std::span<const uint8_t> payload = {};
  // Keeps the payload's memory alive while any of it is in flight. If null, the caller keeps the
  // memory alive (Transport::Call).
  std::shared_ptr<const void> payload_owner = nullptr;
  // The largest possible size of the reply's payload.
  uint64_t reply_bytes = 0;

  // The number of bytes of the request or of the reply, whichever has more.
  uint64_t bytes() const { return std::max<uint64_t>(payload.size(), reply_bytes); }
  bool sends() const {
    return kind != Kind::kAttach && kind != Kind::kPull && kind != Kind::kFetch;
  }
  bool receives() const { return reply_bytes > 0; }
};

struct TransportReply {
  v1::AttachReply attach;
  // The header of the reply to a pull.
  v1::VersionHeader version;
  // The values, encoded as version.encoding specifies. Valid until OnDone() returns.
  FloatPayload payload;
  // Call this after you have read `payload`. If it returns false, the server has given up the
  // payload's memory meanwhile, and the values that you have read are invalid. May be null.
  std::function<bool()> still_stands = nullptr;
};

// One attempt of a call. Its methods run on a thread of the transport, or on a thread that drives
// the transport. They never run from within Transport::Call.
class TransportCall {
 public:
  virtual ~TransportCall() = default;
  // Called when the request has crossed the link, and its answer has to wait. May be called any
  // number of times. Not every transport calls it.
  virtual void OnAccepted() {}
  // Called when the answer has to wait. `missing` is the server's description of what it waits for,
  // or is empty if the link has been busy with other answers all the time. Returns how long the
  // attempt may still take. If it returns nothing, the attempt ends with UNAVAILABLE.
  virtual std::optional<Duration> OnMissing(const std::string& missing) { return std::nullopt; }
  // Called exactly once. `reply` is empty unless the status is OK.
  virtual void OnDone(const absl::Status& status, const TransportReply& reply) = 0;
};

struct ServerEndpoint {
  ServerEndpoint(std::string address, std::string local_address = "", std::string host = "")
      : address(std::move(address)),
        local_address(std::move(local_address)),
        host(std::move(host)) {}
  ServerEndpoint(const char* address) : ServerEndpoint(std::string(address)) {}

  // The address as host:port.
  std::string address;
  // The address for processes of the same host (HostIdentity()), as unix-abstract:NAME. Empty if
  // the server has none.
  std::string local_address;
  std::string host;
  bool operator==(const ServerEndpoint&) const = default;
};

// Thread-safe. Callers must hold no lock. Callbacks never run from within a call.
class Transport {
 public:
  virtual ~Transport() = default;

  // Begins a call, which ends with DEADLINE_EXCEEDED after about `timeout`. If the request's
  // payload has no owner, its memory stays valid and unchanged until OnDone has run with OK, or
  // until Close().
  virtual void Call(uint32_t server, const TransportRequest& request, Duration timeout,
                    std::shared_ptr<TransportCall> call) = 0;

  // Runs `callback` after `delay`, or earlier once Cancel() was called.
  virtual void CallAfter(Duration delay, std::function<void()> callback) = 0;

  // If the transport can do this: runs callbacks on this thread until done() returns true or the
  // deadline comes, and calls done() after each callback. So a thread that waits for an answer need
  // not be woken by another thread.
  virtual void Drive(const std::function<bool()>& done, Time deadline) {}

  // Ends calls in flight and all later calls with CANCELLED.
  virtual void Cancel() = 0;

  // Calls Cancel(), and waits until every callback has returned. No call may begin afterwards.
  virtual void Close() = 0;

  // Returns a zeroed vector from which the transport sends without copying.
  virtual FloatBuffer MakeVector(size_t floats) { return FloatBuffer(floats); }

  // Sends further requests for the server to `endpoint`. Calls in flight to its old address end
  // with UNAVAILABLE or CANCELLED. A transport that does not connect to servers itself may ignore
  // this.
  virtual void MoveServer(uint32_t server, const ServerEndpoint& endpoint) {}

  // Returns true if requests to this server cross a link on which queues should be kept short.
  virtual bool HasLink(uint32_t server) const { return true; }

  virtual Time Now() const { return std::chrono::steady_clock::now(); }
};

struct TransportOptions {
  // The servers' endpoints, by server index.
  std::vector<ServerEndpoint> servers;
  v1::TransportType type = v1::TRANSPORT_TYPE_AUTO;
  // The number of channels to each server.
  uint32_t channels = 2;
  // The size of the vectors that MakeVector will be asked for, in floats.
  uint64_t vector_floats = 0;
};

using TransportFactory = std::function<std::unique_ptr<Transport>(const TransportOptions& options)>;

}  // namespace leeway
