#include "bench/raw/raw_transfer.h"

#include <atomic>
#include <memory>
#include <semaphore>
#include <thread>
#include <utility>

#include "bench/raw/axpy.h"
#include "common/buffer.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr float kTransferScale = 1e-6f;

// Goes through the blocks of a vector in turn.
struct Blocks {
  explicit Blocks(const TransferPlan& plan) : plan(plan), values(plan.total_floats()) {}
  std::span<float> At(uint64_t message) {
    return values.span().subspan(message % plan.blocks * plan.message_floats(),
                                 plan.message_floats());
  }
  const TransferPlan plan;
  FloatBuffer values;
};

class RawServer {
 public:
  RawServer(RawSocket socket, const TransferPlan& plan)
      : socket_(std::move(socket)), parameters_(plan), message_(plan.message_floats()) {}

  absl::Status Serve() {
    switch (parameters_.plan.method) {
      case TransferMethod::kPush:
        return ServePush();
      case TransferMethod::kPull:
        return ServePull();
      case TransferMethod::kPushPull:
        return ServePushPull();
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReceiveAndAdd(uint64_t message, RawHeader& header) {
    RETURN_IF_ERROR(socket_.Receive(header, message_.span()));
    AddScaled(kTransferScale, message_.span(), parameters_.At(message));
    return absl::OkStatus();
  }

  absl::Status ServePush() {
    RawHeader header;
    for (uint64_t i = 0; header.kind != RawHeader::kEnd; ++i) {
      RETURN_IF_ERROR(ReceiveAndAdd(i, header));
      RETURN_IF_ERROR(socket_.Send(header, {}));
    }
    return absl::OkStatus();
  }

  absl::Status ServePull() {
    RawSocket::Headers wanted;
    for (uint64_t i = 0; wanted.last_kind != RawHeader::kEnd;) {
      ASSIGN_OR_RETURN(wanted, socket_.ReceiveHeaders());
      for (uint64_t n = 1; n <= wanted.count; ++n, ++i) {
        const RawHeader header{.kind = n == wanted.count ? wanted.last_kind : RawHeader::kData,
                               .block = static_cast<uint32_t>(i % parameters_.plan.blocks)};
        RETURN_IF_ERROR(socket_.Send(header, parameters_.At(i)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ServePushPull() {
    std::counting_semaphore<> updated(0);
    // The number of the last message, once it is known.
    std::atomic<uint64_t> last{~uint64_t{0}};
    absl::Status sent;
    std::thread sender([&] {
      for (uint64_t i = 0; sent.ok(); ++i) {
        updated.acquire();
        const bool end = i == last.load();
        sent = socket_.Send({.kind = end ? RawHeader::kEnd : RawHeader::kData}, parameters_.At(i));
        if (end) return;
      }
      socket_.Shutdown();
    });
    absl::Status received;
    RawHeader header;
    for (uint64_t i = 0; received.ok() && header.kind != RawHeader::kEnd; ++i) {
      received = ReceiveAndAdd(i, header);
      if (header.kind == RawHeader::kEnd || !received.ok()) last = i;
      updated.release();
    }
    sender.join();
    return received.ok() ? sent : received;
  }

  RawSocket socket_;
  Blocks parameters_;
  FloatBuffer message_;
};

class RawClient {
 public:
  RawClient(RawSocket socket, const TransferPlan& plan)
      : socket_(std::move(socket)), contribution_(plan), weights_(plan) {
    for (float& value : contribution_.values.span()) value = 1;
  }

  // Returns how many messages were moved until `deadline`.
  absl::StatusOr<uint64_t> Run(Time deadline) {
    deadline_ = deadline;
    switch (contribution_.plan.method) {
      case TransferMethod::kPush:
        return Push();
      case TransferMethod::kPull:
        return Pull();
      case TransferMethod::kPushPull:
        return PushPull();
    }
    return 0;
  }

 private:
  bool Over() const { return std::chrono::steady_clock::now() >= deadline_; }

  absl::StatusOr<uint64_t> Push() {
    uint64_t sent = 0;
    uint64_t acknowledged = 0;
    for (bool over = false; !over || acknowledged < sent;) {
      if (!over && sent - acknowledged < contribution_.plan.window) {
        over = Over();
        RETURN_IF_ERROR(socket_.Send({.kind = over ? RawHeader::kEnd : RawHeader::kData},
                                     contribution_.At(sent)));
        ++sent;
        continue;
      }
      ASSIGN_OR_RETURN(const RawSocket::Headers headers, socket_.ReceiveHeaders());
      acknowledged += headers.count;
    }
    return sent;
  }

  absl::StatusOr<uint64_t> Pull() {
    bool over = false;
    auto ask = [&]() -> absl::Status {
      over = Over();
      return socket_.Send({.kind = over ? RawHeader::kEnd : RawHeader::kData}, {});
    };
    uint64_t asked = 0;
    uint64_t received = 0;
    while (!over || received < asked) {
      if (!over && asked - received < contribution_.plan.window) {
        RETURN_IF_ERROR(ask());
        ++asked;
        continue;
      }
      RawHeader header;
      RETURN_IF_ERROR(socket_.Receive(header, weights_.At(received)));
      ++received;
    }
    return received;
  }

  absl::StatusOr<uint64_t> PushPull() {
    std::counting_semaphore<> credits(contribution_.plan.window);
    absl::Status sent;
    std::thread sender([&] {
      for (uint64_t i = 0; sent.ok(); ++i) {
        credits.acquire();
        const bool over = Over();
        sent =
            socket_.Send({.kind = over ? RawHeader::kEnd : RawHeader::kData}, contribution_.At(i));
        if (over) return;
      }
      socket_.Shutdown();
    });
    absl::Status received;
    RawHeader header;
    uint64_t count = 0;
    while (received.ok() && header.kind != RawHeader::kEnd) {
      received = socket_.Receive(header, weights_.At(count));
      ++count;
      credits.release();
    }
    sender.join();
    RETURN_IF_ERROR(received);
    RETURN_IF_ERROR(sent);
    return count;
  }

  RawSocket socket_;
  Blocks contribution_;
  Blocks weights_;
  Time deadline_;
};

}  // namespace

BenchService RawTransferServer(RawSocket socket, const TransferPlan& plan) {
  auto server = std::make_shared<RawServer>(std::move(socket), plan);
  return {.hello = Json::object(), .handle = [server](const Json&) -> absl::StatusOr<Json> {
            RETURN_IF_ERROR(server->Serve());
            return Json::object();
          }};
}

BenchService RawTransferClient(RawSocket socket, const TransferPlan& plan) {
  auto client = std::make_shared<RawClient>(std::move(socket), plan);
  return {.hello = Json::object(), .handle = [client](const Json& request) -> absl::StatusOr<Json> {
            const Time began = std::chrono::steady_clock::now();
            const Duration lasting = FromSeconds(request.value("round", 0.0));
            ASSIGN_OR_RETURN(const uint64_t messages, client->Run(began + lasting));
            const double seconds = Seconds(std::chrono::steady_clock::now() - began);
            return Json{{"messages", messages}, {"seconds", seconds}};
          }};
}

}  // namespace leeway
