// Workers that exchange with each other, in one process. Their servers and the blocks' holder are
// in the test's memory. Calls between workers may be lost, before or after they were carried out.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "client/calls/parameter_client.h"
#include "client/calls/peer_calls.h"
#include "common/philox.h"
#include "exchange/carriers/carrier.h"
#include "server/peers/peer_stores.h"
#include "tests/client/fake_servers.h"
#include "tests/exchange/small_schema.h"

namespace leeway::testing {

inline std::shared_ptr<SharedArena> NoMemory() { return nullptr; }

// The processes of all workers, as calls reach them. Thread-safe after construction.
struct PeerProcesses {
  explicit PeerProcesses(uint32_t workers) {
    for (uint32_t rank = 0; rank < workers; ++rank) {
      stores.push_back(std::make_unique<PeerStores>(rank, NoMemory));
    }
  }
  std::vector<std::unique_ptr<PeerStores>> stores;
  // The share of the calls that are lost, half of them after they were carried out.
  double lost = 0;
};

// What is left to do on a worker's thread, and the calls that are not answered yet. An answer may
// come when the transport is gone.
class PeerWork {
 public:
  void Post(std::function<void()> work) {
    MutexLock lock(mutex_);
    work_.push_back(std::move(work));
    changed_.NotifyAll();
  }
  // Returns false after Cancel.
  bool Wait(const std::shared_ptr<TransportCall>& call) {
    MutexLock lock(mutex_);
    if (cancelled_) return false;
    waiting_.insert(call);
    return true;
  }
  void Answer(const std::shared_ptr<TransportCall>& call, const absl::Status& status,
              const TransportReply& reply) {
    MutexLock lock(mutex_);
    if (waiting_.erase(call) == 0) return;
    work_.push_back([call, status, reply] { call->OnDone(status, reply); });
    changed_.NotifyAll();
  }
  void Cancel() {
    MutexLock lock(mutex_);
    cancelled_ = true;
    for (const auto& call : waiting_) {
      work_.push_back([call] { call->OnDone(absl::CancelledError("cancelled"), {}); });
    }
    waiting_.clear();
    changed_.NotifyAll();
  }
  // Returns false if it was closed before.
  bool Close() {
    MutexLock lock(mutex_);
    changed_.NotifyAll();
    return !std::exchange(closed_, true);
  }
  // Returns the next work, or nothing once it is closed and all is done.
  std::function<void()> Next() {
    MutexLock lock(mutex_);
    while (work_.empty() && !closed_) changed_.Wait(mutex_);
    if (work_.empty()) return nullptr;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    return work;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ GUARDED_BY(mutex_);
  std::set<std::shared_ptr<TransportCall>> waiting_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
};

// Carries one worker's calls to the others, on a thread of its own. Pauses take no time.
class PeerTransport : public Transport {
 public:
  PeerTransport(PeerProcesses& processes, uint64_t seed)
      : processes_(processes), draws_(seed, RandomPurpose::kRetry), thread_([this] {
          while (const std::function<void()> work = work_->Next()) work();
        }) {}
  ~PeerTransport() override { Close(); }

  void Call(uint32_t server, const TransportRequest& request, Duration,
            std::shared_ptr<TransportCall> call) override {
    work_->Post([this, server, request, call = std::move(call)] { Carry(server, request, call); });
  }
  void CallAfter(Duration, std::function<void()> callback) override {
    work_->Post(std::move(callback));
  }
  void Cancel() override { work_->Cancel(); }
  void Close() override {
    Cancel();
    if (work_->Close()) thread_.join();
  }

 private:
  void Carry(uint32_t server, const TransportRequest& request,
             const std::shared_ptr<TransportCall>& call) {
    if (!work_->Wait(call)) return call->OnDone(absl::CancelledError("cancelled"), {});
    const double draw = draws_.Uniform();
    const auto lost = absl::UnavailableError("lost");
    if (draw < processes_.lost / 2) return work_->Answer(call, lost, {});
    const bool loses_answer = draw < processes_.lost;
    Shard::Done done = [work = work_, call, lost,
                        loses_answer](absl::StatusOr<BlockReading> reading) {
      if (loses_answer || !reading.ok()) {
        return work->Answer(call, loses_answer ? lost : reading.status(), {});
      }
      TransportReply reply;
      reply.version = reading->header;
      if (reading->has_payload()) {
        const SharedFloats values = reading->values;
        reply.payload =
            FloatPayload::Of(values.span(), std::make_shared<const SharedFloats>(values));
      }
      work->Answer(call, absl::OkStatus(), reply);
    };
    PeerStores& peer = *processes_.stores[server];
    if (request.kind == TransportRequest::Kind::kFetch) {
      peer.pieces.Fetch(request.header, request.piece, Time{}, std::move(done));
      return;
    }
    auto bytes = std::make_shared<const std::vector<uint8_t>>(request.payload.begin(),
                                                              request.payload.end());
    FloatPayload payload;
    if (!bytes->empty()) payload = FloatPayload(bytes, {{bytes->data(), bytes->size()}});
    peer.meetings.Meet(request.header, std::move(payload), std::move(done));
  }

  PeerProcesses& processes_;
  RandomStream draws_;
  const std::shared_ptr<PeerWork> work_ = std::make_shared<PeerWork>();
  std::thread thread_;
};

// One worker's life. Members are destroyed from the last to the first: the calls end before what
// they use.
struct PeerWorker {
  // `job` has the topology, the mode and the number of workers.
  PeerWorker(const v1::TrainingJob& job, const v1::ModelSchema& schema, uint32_t rank,
             PeerProcesses& processes, std::shared_ptr<FakeModel> model, uint64_t seed = 1)
      : stores(*processes.stores[rank]) {
    registration.set_job_id(1);
    *registration.mutable_job() = job;
    *registration.mutable_schema() = schema;
    registration.set_rank(rank);
    registration.set_incarnation(1);
    registration.mutable_length()->set_clocks(1000);
    registration.mutable_length()->set_steps(1000);
    registration.mutable_length()->set_steps_per_clock(1);
    const uint32_t workers = job.workers().count();
    ParameterClientOptions options;
    for (uint32_t i = 0; i < workers; ++i) {
      registration.mutable_peers()->add_addresses("worker:" + std::to_string(i + 1));
      options.servers.push_back("a:1");
    }
    options.job = 1;
    options.rank = rank;
    options.total = schema.total();
    options.block_elements = model->layout().block_elements();
    client = *ParameterClient::Open(options, Reach(std::move(model)));
    peers = std::make_unique<PeerCalls>(
        PeerCalls::Options{
            .peers = registration.peers(), .identity = {1, 0, rank, 1}, .total = schema.total()},
        [&, seed](const TransportOptions&) {
          return std::make_unique<PeerTransport>(processes, seed);
        });
    weights.resize(schema.total());
  }

  PeerStores& stores;
  v1::RegisterWorkerReply registration;
  std::vector<float> weights;
  FloatBuffer contribution;
  std::unique_ptr<Carrier> carrier;
  std::unique_ptr<ParameterClient> client;
  std::unique_ptr<PeerCalls> peers;
};

}  // namespace leeway::testing
