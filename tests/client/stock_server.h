// A server made of the stock generated stubs, like one in any other language.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/host.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "tests/client/fake_servers.h"

namespace leeway::testing {

// Serves a FakeModel through protobuf's own messages.
class StockServer final : public v1::ParameterServer::Service {
 public:
  StockServer(std::shared_ptr<FakeModel> model, uint32_t index)
      : model_(std::move(model)), index_(index) {
    grpc::ServerBuilder builder;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port_);
    AddLocalPort(local_address(), builder);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~StockServer() override { server_->Shutdown(std::chrono::system_clock::now()); }
  ServerEndpoint endpoint() const {
    return {"127.0.0.1:" + std::to_string(port_), local_address(), HostIdentity()};
  }
  // The number of streams that were begun.
  int streams() const { return streams_; }
  // The number of frames received.
  int frames() const { return frames_; }
  // The number of requests in the largest frame.
  int most_requests() const { return most_requests_; }
  std::atomic<bool> break_next_stream{false};
  // Once, replies claim more payload than there is.
  std::atomic<bool> lie_once{false};
  // The status that ends the streams.
  std::atomic<grpc::StatusCode> break_with{grpc::StatusCode::UNAVAILABLE};

  grpc::Status Attach(grpc::ServerContext* context, const v1::AttachRequest* request,
                      v1::AttachReply* reply) override {
    TransportRequest attach;
    attach.kind = TransportRequest::Kind::kAttach;
    attach.header.set_rank(request->rank());
    auto [status, answer] = model_->Answer(index_, attach);
    *reply = answer.attach;
    return status.ok() ? grpc::Status::OK : Refuse(status, *context);
  }

  grpc::Status Exchange(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::ReplyFrame, v1::RequestFrame>* stream) override {
    ++streams_;
    v1::RequestFrame frame;
    while (stream->Read(&frame)) {
      ++frames_;
      most_requests_ = std::max<int>(most_requests_, frame.requests_size());
      if (break_next_stream.exchange(false)) return {break_with, "restarting"};
      v1::ReplyFrame replies;
      if (frame.has_offer()) replies.mutable_answer()->set_refusal("a stock server maps nothing");
      size_t at = 0;
      for (const v1::StreamRequest& request : frame.requests()) {
        const std::string payload = frame.payload().substr(at, request.payload_bytes());
        at += request.payload_bytes();
        Answer(request, payload, replies);
      }
      if (lie_once.exchange(false)) replies.mutable_replies(0)->set_payload_bytes(1 << 20);
      if (!stream->Write(replies)) break;
    }
    return grpc::Status::OK;
  }

 private:
  std::string local_address() const {
    return absl::StrCat("unix-abstract:leeway-test-", getpid(), "-",
                        reinterpret_cast<uintptr_t>(this));
  }

  void Answer(const v1::StreamRequest& sent, const std::string& payload, v1::ReplyFrame& replies) {
    using Kind = TransportRequest::Kind;
    constexpr Kind kKinds[] = {Kind::kPush, Kind::kPull, Kind::kPushPull, Kind::kInitialize};
    TransportRequest request;
    request.kind = kKinds[sent.method()];
    request.header = sent.header();
    request.reads = ReadKindOf(sent);
    request.payload = {reinterpret_cast<const uint8_t*>(payload.data()), payload.size()};
    const auto [status, answer] = model_->Answer(index_, request);
    v1::StreamReply& reply = *replies.add_replies();
    reply.set_id(sent.id());
    reply.set_code(static_cast<int>(status.code()));
    reply.set_message(std::string(status.message()));
    *reply.mutable_version() = answer.version;
    std::vector<float> values(answer.payload.size());
    answer.payload.CopyTo(values);
    reply.set_payload_bytes(values.size() * sizeof(float));
    replies.mutable_payload()->append(reinterpret_cast<const char*>(values.data()),
                                      values.size() * sizeof(float));
  }

  const std::shared_ptr<FakeModel> model_;
  const uint32_t index_;
  std::atomic<int> streams_{0}, frames_{0}, most_requests_{0};
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// A call whose end can be waited for.
class Ending : public TransportCall {
 public:
  void OnDone(const absl::Status& status, const TransportReply&) override {
    ended.set_value(status);
  }
  std::promise<absl::Status> ended;
};

}  // namespace leeway::testing
