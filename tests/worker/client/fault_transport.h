// A network that doubles requests and loses requests and replies, between a ParameterClient and any
// other transport:
//
//   auto client = ParameterClient::Open(options, WithFaults({.duplicate = true, .drop_reply_every =
//   10}));
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/support/byte_buffer.h>

#include "common/mutex.h"
#include "worker/client/grpc_transport.h"
#include "worker/client/transport.h"

namespace leeway::testing {

struct Faults {
  // Every request goes out twice; the answer of the second is the one that counts.
  bool duplicate = false;
  // Every n-th call is carried out and its answer lost; 0: none.
  uint32_t drop_reply_every = 0;
  // Every n-th call is lost on its way; 0: none.
  uint32_t drop_request_every = 0;
};

class FaultTransport : public Transport {
 public:
  FaultTransport(std::unique_ptr<Transport> inner, const Faults& faults)
      : inner_(std::move(inner)), faults_(faults) {}

  void CallUnary(uint32_t server, const std::string& method, const grpc::ByteBuffer& request,
                 Duration timeout, Done done) override {
    const uint32_t number = ++calls_;
    if (Hits(number, faults_.drop_request_every)) {
      inner_->CallAfter(std::chrono::milliseconds(1), [done = std::move(done)] {
        done(absl::UnavailableError("request lost by the test"), {});
      });
      return;
    }
    const bool lose = Hits(number, faults_.drop_reply_every);
    Done last = [done = std::move(done), lose](absl::Status status, grpc::ByteBuffer reply) {
      if (lose) return done(absl::UnavailableError("reply lost by the test"), {});
      done(std::move(status), std::move(reply));
    };
    if (!faults_.duplicate) {
      inner_->CallUnary(server, method, request, timeout, std::move(last));
      return;
    }
    // The caller's memory must stay until both are over: `done` runs with the later of the two.
    auto pair = std::make_shared<Pair>(std::move(last));
    for (bool counts : {false, true}) {
      inner_->CallUnary(server, method, request, timeout,
                        [pair, counts](absl::Status status, grpc::ByteBuffer reply) {
                          pair->Add(counts, std::move(status), std::move(reply));
                        });
    }
  }

  void CallAfter(Duration delay, std::function<void()> callback) override {
    inner_->CallAfter(delay, std::move(callback));
  }
  void Cancel() override { inner_->Cancel(); }
  void Close() override { inner_->Close(); }
  Time Now() const override { return inner_->Now(); }

 private:
  // Waits for both calls, gives the answer of one.
  class Pair {
   public:
    explicit Pair(Done done) : done_(std::move(done)) {}
    void Add(bool counts, absl::Status status, grpc::ByteBuffer reply) {
      {
        MutexLock lock(mutex_);
        if (counts) {
          status_ = std::move(status);
          reply_ = std::move(reply);
        }
        if (--left_ > 0) return;
      }
      done_(status_, reply_);
    }

   private:
    const Done done_;
    Mutex mutex_;
    int left_ GUARDED_BY(mutex_) = 2;
    // Not touched once both are in.
    absl::Status status_;
    grpc::ByteBuffer reply_;
  };

  static bool Hits(uint32_t number, uint32_t every) { return every > 0 && number % every == 0; }

  const std::unique_ptr<Transport> inner_;
  const Faults faults_;
  std::atomic<uint32_t> calls_{0};
};

inline TransportFactory WithFaults(const Faults& faults,
                                   TransportFactory inner = MakeGrpcTransport) {
  return [faults, inner](const std::vector<std::string>& servers) {
    return std::make_unique<FaultTransport>(inner(servers), faults);
  };
}

}  // namespace leeway::testing
