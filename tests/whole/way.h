// The way to a server, over real gRPC. It passes on calls of any service, and answers some of them
// itself, like a connection or a proxy in trouble.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <grpcpp/channel.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "common/hand_over.h"
#include "common/mutex.h"
#include "common/rpc/channel.h"

namespace leeway::testing {

// What the way does to one call.
enum class WayFault {
  kNone,
  // Answered at once: the other side does not receive it.
  kBefore,
  // The other side carries it out, but its answer is lost.
  kAfter,
};

class Way : public grpc::CallbackGenericService {
 public:
  // `method` is the full name, /leeway.v1.Coordinator/Leave. Called from any thread.
  using Decide = std::function<WayFault(const std::string& method)>;
  Way(grpc::StatusCode code, Decide decide) : code_(code), decide_(std::move(decide)) {
    grpc::ServerBuilder builder;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port_);
    builder.RegisterCallbackGenericService(this);
    server_ = builder.BuildAndStart();
  }
  ~Way() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  // Sets where calls go from now on. Until then they reach no server.
  void LeadTo(const std::string& address) {
    MutexLock lock(mutex_);
    channel_ = MakeChannel(address);
  }

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  class Passage;

  const grpc::StatusCode code_;
  const Decide decide_;
  int port_ = 0;
  mutable Mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_ GUARDED_BY(mutex_);
  std::unique_ptr<grpc::Server> server_;
};

// One call that is passed on, message by message, in each direction. Deletes itself.
class Way::Passage final : public grpc::ServerGenericBidiReactor {
 public:
  Passage(grpc::GenericCallbackServerContext* context, std::shared_ptr<grpc::Channel> channel,
          WayFault fault, grpc::StatusCode code)
      : context_(context), stub_(std::move(channel)), fault_(fault), code_(code), onward_(*this) {
    if (fault_ == WayFault::kBefore) {
      onward_over_ = true;
      HandOver(this);
      Finish({code_, "said on the way, before"});
      return;
    }
    client_.set_deadline(context->deadline());
    HandOver(this);
    stub_.PrepareBidiStreamingCall(&client_, context->method(), grpc::StubOptions(), &onward_);
    // Operations are also begun from here, until the other side has nothing more to send.
    onward_.AddHold();
    onward_.StartCall();
    onward_.StartRead(&answer_);
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    TakeOver(this);
    MutexLock lock(mutex_);
    if (!open_) return;
    if (ok) return onward_.StartWrite(&request_);
    onward_.StartWritesDone();
  }
  void OnWriteDone(bool ok) override {
    TakeOver(this);
    if (ok) return onward_.StartRead(&answer_);
    client_.TryCancel();
    onward_.StartRead(&answer_);
  }
  void OnCancel() override {
    TakeOver(this);
    client_.TryCancel();
  }
  void OnDone() override {
    TakeOver(this);
    Leave(server_over_);
  }

 private:
  class Onward final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    explicit Onward(Passage& passage) : passage_(passage) {}
    void OnReadDone(bool ok) override {
      TakeOver(&passage_);
      if (ok) return passage_.StartWrite(&passage_.answer_);
      MutexLock lock(passage_.mutex_);
      passage_.open_ = false;
      RemoveHold();
    }
    void OnWriteDone(bool ok) override {
      TakeOver(&passage_);
      if (ok) passage_.StartRead(&passage_.request_);
    }
    void OnDone(const grpc::Status& status) override {
      TakeOver(&passage_);
      passage_.End(status);
    }

   private:
    Passage& passage_;
  };

  void End(const grpc::Status& status) {
    if (fault_ == WayFault::kAfter) {
      Finish({code_, "said on the way, after"});
    } else {
      for (const auto& [key, value] : client_.GetServerTrailingMetadata()) {
        context_->AddTrailingMetadata({key.data(), key.size()}, {value.data(), value.size()});
      }
      Finish(status);
    }
    Leave(onward_over_);
  }
  void Leave(bool& mine) {
    bool last;
    {
      MutexLock lock(mutex_);
      mine = true;
      last = server_over_ && onward_over_;
    }
    if (last) delete this;
  }

  grpc::GenericCallbackServerContext* const context_;
  grpc::GenericStub stub_;
  const WayFault fault_;
  const grpc::StatusCode code_;
  grpc::ClientContext client_;
  grpc::ByteBuffer request_, answer_;
  Onward onward_;
  Mutex mutex_;
  // More may be sent onward.
  bool open_ GUARDED_BY(mutex_) = true;
  bool server_over_ = false;
  bool onward_over_ = false;
};

inline grpc::ServerGenericBidiReactor* Way::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  std::shared_ptr<grpc::Channel> channel;
  {
    MutexLock lock(mutex_);
    channel = channel_;
  }
  const WayFault fault = channel == nullptr ? WayFault::kBefore : decide_(context->method());
  const grpc::StatusCode code = channel == nullptr ? grpc::StatusCode::UNAVAILABLE : code_;
  return new Passage(context, std::move(channel), fault, code);
}

}  // namespace leeway::testing
