// A network that doubles requests and loses requests and replies, between a ParameterClient and any
// other transport:
//
//   auto client = ParameterClient::Open(options, WithFaults({.duplicate = true, .drop_reply_every =
//   10}));
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/transport/stream_transport.h"
#include "client/transport/transport.h"
#include "common/mutex.h"

namespace leeway::testing {

struct Faults {
  // Every request is sent twice; the second answer counts.
  bool duplicate = false;
  // Every n-th call is carried out and its answer lost; 0: no answer is lost.
  uint32_t drop_reply_every = 0;
  // Every n-th call is lost on its way; 0: no call is lost.
  uint32_t drop_request_every = 0;
};

// Passes on what it is told.
class ForwardingCall : public TransportCall {
 public:
  explicit ForwardingCall(std::shared_ptr<TransportCall> call) : call_(std::move(call)) {}
  void OnAccepted() override { call_->OnAccepted(); }
  std::optional<Duration> OnMissing(const std::string& missing) override {
    return call_->OnMissing(missing);
  }
  void OnDone(const absl::Status& status, const TransportReply& reply) override {
    call_->OnDone(status, reply);
  }

 private:
  const std::shared_ptr<TransportCall> call_;
};

class FaultTransport : public Transport {
 public:
  FaultTransport(std::unique_ptr<Transport> inner, const Faults& faults)
      : inner_(std::move(inner)), faults_(faults) {}

  void Call(uint32_t server, const TransportRequest& request, Duration timeout,
            std::shared_ptr<TransportCall> call) override {
    const uint32_t number = ++calls_;
    if (Hits(number, faults_.drop_request_every)) {
      inner_->CallAfter(std::chrono::milliseconds(1), [call = std::move(call)] {
        call->OnDone(absl::UnavailableError("request lost by the test"), {});
      });
      return;
    }
    if (Hits(number, faults_.drop_reply_every)) call = std::make_shared<Loser>(std::move(call));
    if (!faults_.duplicate) return inner_->Call(server, request, timeout, std::move(call));
    // The caller's memory must stay until both calls are over, so `call` is done with the later
    // one.
    auto pair = std::make_shared<Pair>(std::move(call), request.receives());
    for (bool counts : {false, true}) {
      inner_->Call(server, request, timeout, std::make_shared<Half>(pair, counts));
    }
  }

  void CallAfter(Duration delay, std::function<void()> callback) override {
    inner_->CallAfter(delay, std::move(callback));
  }
  void Cancel() override { inner_->Cancel(); }
  void Close() override { inner_->Close(); }
  FloatBuffer MakeVector(size_t floats) override { return inner_->MakeVector(floats); }
  bool HasLink(uint32_t server) const override { return inner_->HasLink(server); }
  Time Now() const override { return inner_->Now(); }

 private:
  class Loser : public ForwardingCall {
   public:
    using ForwardingCall::ForwardingCall;
    void OnDone(const absl::Status&, const TransportReply&) override {
      ForwardingCall::OnDone(absl::UnavailableError("reply lost by the test"), {});
    }
  };

  // Waits for both calls, and returns the answer of one.
  class Pair {
   public:
    Pair(std::shared_ptr<TransportCall> call, bool receives)
        : call_(std::move(call)), receives_(receives) {}
    std::optional<Duration> OnMissing(const std::string& missing) {
      return call_->OnMissing(missing);
    }
    void Add(bool counts, const absl::Status& status, const TransportReply& reply) {
      {
        MutexLock lock(mutex_);
        if (counts) {
          status_ = status;
          reply_.attach = reply.attach;
          reply_.version = reply.version;
          // The reply's memory is only valid during this call.
          if (receives_) {
            for (const FloatPayload::Piece& piece : reply.payload.pieces()) {
              bytes_.insert(bytes_.end(), piece.begin(), piece.end());
            }
          }
          reply_.payload = FloatPayload(nullptr, {bytes_});
        }
        if (--left_ > 0) return;
      }
      call_->OnDone(status_, reply_);
    }

   private:
    const std::shared_ptr<TransportCall> call_;
    const bool receives_;
    Mutex mutex_;
    int left_ GUARDED_BY(mutex_) = 2;
    // Not changed any more once both calls are done.
    absl::Status status_;
    TransportReply reply_;
    std::vector<uint8_t> bytes_;
  };
  class Half : public TransportCall {
   public:
    Half(std::shared_ptr<Pair> pair, bool counts) : pair_(std::move(pair)), counts_(counts) {}
    std::optional<Duration> OnMissing(const std::string& missing) override {
      return pair_->OnMissing(missing);
    }
    void OnDone(const absl::Status& status, const TransportReply& reply) override {
      pair_->Add(counts_, status, reply);
    }

   private:
    const std::shared_ptr<Pair> pair_;
    const bool counts_;
  };

  static bool Hits(uint32_t number, uint32_t every) { return every > 0 && number % every == 0; }

  const std::unique_ptr<Transport> inner_;
  const Faults faults_;
  std::atomic<uint32_t> calls_{0};
};

inline TransportFactory WithFaults(const Faults& faults,
                                   TransportFactory inner = MakeStreamTransport) {
  return [faults, inner](const TransportOptions& options) {
    return std::make_unique<FaultTransport>(inner(options), faults);
  };
}

}  // namespace leeway::testing
