// Work that the threads of a server's queue share.
#include "common/service/server_queue.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "common/clock.h"
#include "common/mutex.h"
#include "common/rpc/channel.h"
#include "tests/catch.h"

namespace leeway::server_queue {
namespace {

// A server without services whose queue has this number of threads.
struct Rig {
  explicit Rig(uint32_t threads) {
    grpc::ServerBuilder builder;
    int port = 0;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port);
    queue = std::make_unique<ServerQueue>(builder, nullptr, threads);
    server = builder.BuildAndStart();
    REQUIRE(port != 0);
    queue->Start();
  }
  ~Rig() {
    server->Shutdown(std::chrono::system_clock::now());
    queue.reset();
  }

  std::unique_ptr<ServerQueue> queue;
  std::unique_ptr<grpc::Server> server;
};

// Lets no thread go on before all have come.
class Meeting {
 public:
  explicit Meeting(uint64_t all) : all_(all) {}
  // Returns false if a thread did not come in time.
  bool Meet() {
    const Time deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    ++here_;
    changed_.NotifyAll();
    while (here_ < all_) {
      if (!changed_.WaitUntil(mutex_, deadline)) return here_ == all_;
    }
    return true;
  }

 private:
  const uint64_t all_;
  Mutex mutex_;
  CondVar changed_;
  uint64_t here_ GUARDED_BY(mutex_) = 0;
};

TEST_CASE("the threads of the queue have a part of shared work each") {
  Rig rig(4);
  // This thread and three threads of the queue.
  Meeting meeting(4);
  std::atomic<int> met = 0;
  rig.queue->Share(4, [&](uint64_t) { met += meeting.Meet() ? 1 : 0; });
  CHECK(met == 4);
}

TEST_CASE("every part of shared work runs once, whoever comes to help") {
  for (const uint32_t threads : {1, 2, 4}) {
    Rig rig(threads);
    for (const uint64_t parts : {0, 1, 3, 1000}) {
      for (int repeat = 0; repeat < 20; ++repeat) {
        std::vector<std::atomic<int>> runs(parts);
        rig.queue->Share(parts, [&](uint64_t part) { ++runs[part]; });
        for (const auto& run : runs) REQUIRE(run == 1);
      }
    }
  }
}

TEST_CASE("one thread alone does the parts in order, itself") {
  Rig rig(1);
  std::vector<uint64_t> order;
  const auto self = std::this_thread::get_id();
  rig.queue->Share(5, [&](uint64_t part) {
    CHECK(std::this_thread::get_id() == self);
    order.push_back(part);
  });
  CHECK(order == std::vector<uint64_t>{0, 1, 2, 3, 4});
}

}  // namespace
}  // namespace leeway::server_queue
