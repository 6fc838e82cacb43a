// Fake parameter servers in the test's own memory. They are reached through a Transport with a
// clock of its own: a pause of seconds takes no time. They see one worker: a contribution is
// applied on arrival.
#pragma once

#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "client/calls/operations.h"
#include "client/transport/transport.h"
#include "common/blocks.h"
#include "common/codec/encoded.h"
#include "common/mutex.h"
#include "common/status.h"
#include "leeway/v1/parameter_server.pb.h"
#include "tests/catch.h"

namespace leeway::testing {

// A call as a server sees it.
struct FakeRequest {
  uint32_t server = 0;
  // The method's name, such as "Push".
  std::string method;
  v1::ExchangeHeader header;
  ReadKind reads = ReadKind::kAtClock;
  // The payload, decoded.
  std::vector<float> values;
  // The payload as it came.
  std::string payload;
  // The number of the call, from 0.
  size_t number = 0;
};

// What the servers hold. It outlives the transport, so that a test can look at it. Thread-safe.
class FakeModel {
 public:
  FakeModel(const BlockLayout& layout, bool elastic = false, float alpha = 0)
      : layout_(layout), elastic_(elastic), alpha_(alpha), weights_(layout.total()) {}

  // Set before the first call. An error is the answer, and the request is not carried out. May
  // advance time.
  std::function<absl::Status(const FakeRequest&)> script;
  std::atomic<uint64_t> attach_clock{0};
  std::atomic<uint64_t> counted{0};
  std::atomic<bool> needs_initialize{false};
  std::atomic<uint64_t> staleness{0};
  // By index: servers that have no blocks.
  std::set<uint32_t> servers_without_blocks;

  const BlockLayout& layout() const { return layout_; }
  void set_weights(std::vector<float> weights) {
    MutexLock lock(mutex_);
    weights_ = std::move(weights);
  }
  std::vector<float> weights() const {
    MutexLock lock(mutex_);
    return weights_;
  }
  std::vector<FakeRequest> requests() const {
    MutexLock lock(mutex_);
    return requests_;
  }
  Time Now() const {
    MutexLock lock(mutex_);
    return now_;
  }
  void Advance(Duration duration) {
    MutexLock lock(mutex_);
    now_ += duration;
  }

  // Carries a request out.
  std::pair<absl::Status, TransportReply> Answer(uint32_t server, const TransportRequest& sent) {
    absl::StatusOr<FakeRequest> decoded = Decode(server, sent);
    if (!decoded.ok()) return {decoded.status(), {}};
    FakeRequest& request = *decoded;
    {
      MutexLock lock(mutex_);
      request.number = requests_.size();
      requests_.push_back(request);
    }
    if (script) {
      const absl::Status status = script(request);
      if (!status.ok()) return {status, {}};
    }
    MutexLock lock(mutex_);
    return {absl::OkStatus(), Reply(request)};
  }

 private:
  absl::StatusOr<FakeRequest> Decode(uint32_t server, const TransportRequest& sent) const {
    FakeRequest request;
    request.server = server;
    request.method = MethodName(sent.kind);
    request.header = sent.header;
    request.reads = sent.reads;
    request.payload.assign(sent.payload.begin(), sent.payload.end());
    if (sent.payload.empty()) return request;
    request.values.resize(layout_.Range(sent.header.block()).count);
    // The error is reported to the client: Catch may be used from one thread only, and this is
    // another.
    RETURN_IF_ERROR(leeway::Decode(sent.header.encoding(), sent.payload, request.values));
    return request;
  }

  TransportReply Reply(const FakeRequest& request) REQUIRES(mutex_) {
    TransportReply reply;
    if (request.method == "Attach") {
      const bool none = servers_without_blocks.contains(request.server);
      reply.attach.set_clock(none ? std::numeric_limits<uint64_t>::max() : attach_clock.load());
      reply.attach.set_needs_initialize(!none && needs_initialize);
      reply.attach.set_counted(none ? 0 : counted.load());
      return reply;
    }
    const ElementRange range = layout_.Range(request.header.block());
    const auto first = weights_.begin() + static_cast<ptrdiff_t>(range.offset);
    std::vector<float> before(first, first + static_cast<ptrdiff_t>(range.count));
    if (request.method == "Initialize")
      std::copy(request.values.begin(), request.values.end(), first);
    const bool push = request.method == "Push" || request.method == "PushPull";
    if (push &&
        applied_.insert({request.header.rank(), request.header.clock(), request.header.block()})
            .second) {
      for (size_t i = 0; i < request.values.size(); ++i) {
        first[static_cast<ptrdiff_t>(i)] +=
            elastic_ ? alpha_ * (request.values[i] - before[i]) : -request.values[i];
      }
    }
    if (request.method == "Push" || request.method == "Initialize") return reply;
    reply.version.set_block(request.header.block());
    reply.version.set_staleness(staleness);
    reply.version.set_version(request.header.clock() + 1);
    auto values = std::make_shared<std::vector<float>>(
        elastic_ && push ? before
                         : std::vector<float>(first, first + static_cast<ptrdiff_t>(range.count)));
    const std::span<const float> span(*values);
    reply.payload = FloatPayload::Of(span, std::move(values));
    return reply;
  }

  const BlockLayout layout_;
  const bool elastic_;
  const float alpha_;
  mutable Mutex mutex_;
  std::vector<float> weights_ GUARDED_BY(mutex_);
  std::set<std::tuple<uint32_t, uint64_t, uint32_t>> applied_ GUARDED_BY(mutex_);
  std::vector<FakeRequest> requests_ GUARDED_BY(mutex_);
  Time now_ GUARDED_BY(mutex_){};
};

// Answers calls one after the other on a thread of its own, unless it is told to hold them.
class FakeTransport : public Transport {
 public:
  explicit FakeTransport(std::shared_ptr<FakeModel> model)
      : model_(std::move(model)), thread_([this] { Loop(); }) {}
  ~FakeTransport() override { Close(); }

  void Call(uint32_t server, const TransportRequest& request, Duration timeout,
            std::shared_ptr<TransportCall> call) override {
    Post([this, server, request, call = std::move(call)] {
      if (cancelled()) return call->OnDone(absl::CancelledError("cancelled"), {});
      const auto [status, reply] = model_->Answer(server, request);
      call->OnDone(status, reply);
    });
  }

  void CallAfter(Duration delay, std::function<void()> callback) override {
    Post([this, delay, callback = std::move(callback)] {
      model_->Advance(delay);
      callback();
    });
  }

  void Cancel() override {
    MutexLock lock(mutex_);
    cancelled_ = true;
    changed_.NotifyAll();
  }

  void Close() override {
    {
      MutexLock lock(mutex_);
      if (closed_) return;
      cancelled_ = closed_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

  Time Now() const override { return model_->Now(); }

 private:
  void Post(std::function<void()> work) {
    MutexLock lock(mutex_);
    work_.push_back(std::move(work));
    changed_.NotifyAll();
  }
  bool cancelled() {
    MutexLock lock(mutex_);
    return cancelled_;
  }
  void Loop() {
    while (true) {
      std::function<void()> work;
      {
        MutexLock lock(mutex_);
        while (work_.empty() && !closed_) changed_.Wait(mutex_);
        if (work_.empty()) return;
        work = std::move(work_.front());
        work_.pop_front();
      }
      work();
    }
  }

  const std::shared_ptr<FakeModel> model_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

inline TransportFactory Reach(std::shared_ptr<FakeModel> model) {
  return [model](const TransportOptions&) { return std::make_unique<FakeTransport>(model); };
}

}  // namespace leeway::testing
