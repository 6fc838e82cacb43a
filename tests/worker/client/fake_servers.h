// Parameter servers in the test's own memory, reached through a Transport that keeps its own time:
// a pause of seconds passes in no time. One worker's view: a contribution is applied on arrival.
#pragma once

#include <atomic>
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

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include "common/blocks.h"
#include "common/mutex.h"
#include "common/wire.h"
#include "leeway/v1/parameter_server.pb.h"
#include "worker/client/transport.h"

namespace leeway::testing {

// A call as a server sees it.
struct FakeRequest {
  uint32_t server = 0;
  // "Push" and so on.
  std::string method;
  v1::ExchangeHeader header;
  bool latest = false;
  std::vector<float> values;
  // Counts the calls, from 0.
  size_t number = 0;
};

// What the servers hold; outlives the transport, so that a test can look at it. Thread-safe.
class FakeModel {
 public:
  FakeModel(const BlockLayout& layout, bool elastic = false, float alpha = 0)
      : layout_(layout), elastic_(elastic), alpha_(alpha), weights_(layout.total()) {}

  // Set before the first call. Not OK: the answer in place of carrying the request out. May advance
  // time.
  std::function<absl::Status(const FakeRequest&)> script;
  std::atomic<uint64_t> attach_clock{0};
  std::atomic<bool> needs_initialize{false};
  std::atomic<uint64_t> staleness{0};
  // By index.
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
  std::pair<absl::Status, grpc::ByteBuffer> Answer(uint32_t server, const std::string& method,
                                                   const grpc::ByteBuffer& bytes) {
    FakeRequest request = Decode(server, method, bytes);
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
  static grpc::ByteBuffer Serialize(const google::protobuf::MessageLite& message) {
    const grpc::Slice slice(message.SerializeAsString());
    return grpc::ByteBuffer(&slice, 1);
  }
  template <typename Message>
  static void Parse(const grpc::ByteBuffer& bytes, Message& message) {
    grpc::ByteBuffer copy(bytes);
    grpc::ProtoBufferReader reader(&copy);
    message.ParseFromZeroCopyStream(&reader);
  }

  FakeRequest Decode(uint32_t server, const std::string& method, const grpc::ByteBuffer& bytes) {
    FakeRequest request;
    request.server = server;
    request.method = method.substr(method.rfind('/') + 1);
    if (request.method == "Pull") {
      v1::PullRequest pull;
      Parse(bytes, pull);
      request.header = pull.header();
      request.latest = pull.latest();
    } else if (request.method != "Attach") {
      const auto payload = DecodePush(bytes, request.header);
      if (payload.ok()) {
        request.values.resize(payload->size());
        payload->CopyTo(request.values);
      }
    }
    return request;
  }

  grpc::ByteBuffer Reply(const FakeRequest& request) REQUIRES(mutex_) {
    if (request.method == "Attach") {
      v1::AttachReply reply;
      const bool none = servers_without_blocks.contains(request.server);
      reply.set_clock(none ? std::numeric_limits<uint64_t>::max() : attach_clock.load());
      reply.set_needs_initialize(!none && needs_initialize);
      return Serialize(reply);
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
    if (request.method == "Push" || request.method == "Initialize")
      return Serialize(v1::PushReply());
    v1::VersionHeader header;
    header.set_block(request.header.block());
    header.set_staleness(staleness);
    header.set_version(request.header.clock() + 1);
    auto values = std::make_shared<std::vector<float>>(
        elastic_ && push ? before
                         : std::vector<float>(first, first + static_cast<ptrdiff_t>(range.count)));
    return EncodePullReply(header, *values, values);
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

// Answers calls one after the other on a thread of its own, unless told to hold them.
class FakeTransport : public Transport {
 public:
  explicit FakeTransport(std::shared_ptr<FakeModel> model)
      : model_(std::move(model)), thread_([this] { Loop(); }) {}
  ~FakeTransport() override { Close(); }

  void CallUnary(uint32_t server, const std::string& method, const grpc::ByteBuffer& request,
                 Duration timeout, Done done) override {
    Post([this, server, method, request, done = std::move(done)] {
      if (cancelled()) return done(absl::CancelledError("cancelled"), {});
      auto [status, reply] = model_->Answer(server, method, request);
      done(status, reply);
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
  return
      [model](const std::vector<std::string>&) { return std::make_unique<FakeTransport>(model); };
}

}  // namespace leeway::testing
