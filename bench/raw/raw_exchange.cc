#include "bench/raw/raw_exchange.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "common/blocks.h"
#include "common/buffer.h"
#include "common/status.h"

namespace leeway {
namespace {

// Returns the ranges of one server's blocks, in order.
std::vector<ElementRange> RangesOf(const RawExchangePlan& plan, uint32_t server) {
  std::vector<ElementRange> ranges;
  uint64_t block = 0;
  for (uint64_t begin = 0; begin < plan.total_floats; begin += plan.block_floats, ++block) {
    if (block % plan.servers != server) continue;
    ranges.push_back({begin, std::min(plan.block_floats, plan.total_floats - begin)});
  }
  return ranges;
}

std::span<float> Part(FloatBuffer& values, const ElementRange& range) {
  return values.span().subspan(range.offset, range.count);
}

// Runs `work` for every socket on two threads: one sends, and one receives. Returns the first
// error. If a thread fails, wakes the other threads.
absl::Status OnEverySocket(std::vector<RawSocket>& sockets,
                           const std::function<absl::Status(size_t socket, bool sends)>& work) {
  std::vector<absl::Status> results(2 * sockets.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      results[i] = work(i / 2, i % 2 == 0);
      if (results[i].ok()) return;
      for (RawSocket& socket : sockets) socket.Shutdown();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& result : results) RETURN_IF_ERROR(result);
  return absl::OkStatus();
}

class Server {
 public:
  Server(std::vector<RawSocket> sockets, const RawExchangePlan& plan, uint32_t server)
      : sockets_(std::move(sockets)), ranges_(RangesOf(plan, server)), arrived_(ranges_.size()) {
    uint64_t floats = 0;
    for (ElementRange& range : ranges_) {
      range.offset = floats;
      floats += range.count;
    }
    aggregate_ = FloatBuffer(floats);
    for (size_t i = 0; i < sockets_.size(); ++i) received_.emplace_back(plan.block_floats);
  }

  absl::Status Run(uint64_t clocks) {
    for (auto& count : arrived_) count = 0;
    failed_ = false;
    return OnEverySocket(sockets_, [&](size_t socket, bool sends) {
      absl::Status status = sends ? Send(socket, clocks) : Receive(socket, clocks);
      if (!status.ok()) Fail();
      return status;
    });
  }

 private:
  absl::Status Receive(size_t socket, uint64_t clocks) {
    RawHeader header;
    for (uint64_t clock = 0; clock < clocks; ++clock) {
      for (size_t block = 0; block < ranges_.size(); ++block) {
        RETURN_IF_ERROR(
            sockets_[socket].Receive(header, received_[socket].span().first(ranges_[block].count)));
        arrived_[block].fetch_add(1, std::memory_order_release);
        arrived_[block].notify_all();
      }
    }
    return absl::OkStatus();
  }

  absl::Status Send(size_t socket, uint64_t clocks) {
    for (uint64_t clock = 0; clock < clocks; ++clock) {
      for (size_t block = 0; block < ranges_.size(); ++block) {
        WaitForAll(block, (clock + 1) * sockets_.size());
        if (failed_) return absl::CancelledError("another connection of the raw exchange failed");
        RETURN_IF_ERROR(sockets_[socket].Send({}, Part(aggregate_, ranges_[block])));
      }
    }
    return absl::OkStatus();
  }

  void WaitForAll(size_t block, uint64_t contributions) {
    std::atomic<uint64_t>& count = arrived_[block];
    uint64_t now = count.load(std::memory_order_acquire);
    while (now < contributions) {
      count.wait(now, std::memory_order_acquire);
      now = count.load(std::memory_order_acquire);
    }
  }

  // Wakes all waiting threads.
  void Fail() {
    failed_ = true;
    for (auto& count : arrived_) {
      count = ~uint64_t{0} / 2;
      count.notify_all();
    }
  }

  std::vector<RawSocket> sockets_;
  // The ranges of the server's blocks in aggregate_.
  std::vector<ElementRange> ranges_;
  FloatBuffer aggregate_;
  // The current block of each socket, by socket.
  std::vector<FloatBuffer> received_;
  // The number of contributions in this run, by block.
  std::vector<std::atomic<uint64_t>> arrived_;
  std::atomic<bool> failed_{false};
};

class RawWorker {
 public:
  RawWorker(std::vector<RawSocket> sockets, const RawExchangePlan& plan)
      : sockets_(std::move(sockets)),
        contribution_(plan.total_floats),
        weights_(plan.total_floats) {
    for (float& value : contribution_.span()) value = 1;
    for (uint32_t server = 0; server < plan.servers; ++server) {
      ranges_.push_back(RangesOf(plan, server));
    }
  }

  // Returns the seconds of each step.
  absl::StatusOr<std::vector<double>> Run(uint64_t clocks) {
    std::vector<double> seconds;
    Time began = std::chrono::steady_clock::now();
    auto next = [&]() noexcept {
      const Time now = std::chrono::steady_clock::now();
      seconds.push_back(Seconds(now - began));
      began = now;
    };
    std::barrier step(static_cast<std::ptrdiff_t>(2 * sockets_.size()), next);
    RETURN_IF_ERROR(OnEverySocket(sockets_, [&](size_t socket, bool sends) -> absl::Status {
      absl::Status status;
      // Every thread goes through every step, also after an error, so that no other thread waits
      // for it.
      for (uint64_t clock = 0; clock < clocks; ++clock) {
        if (status.ok()) status = Move(socket, sends);
        if (!status.ok()) {
          for (RawSocket& other : sockets_) other.Shutdown();
        }
        step.arrive_and_wait();
      }
      return status;
    }));
    return seconds;
  }

 private:
  absl::Status Move(size_t socket, bool sends) {
    RawHeader header;
    for (const ElementRange& range : ranges_[socket]) {
      RETURN_IF_ERROR(sends ? sockets_[socket].Send({}, Part(contribution_, range))
                            : sockets_[socket].Receive(header, Part(weights_, range)));
    }
    return absl::OkStatus();
  }

  std::vector<RawSocket> sockets_;
  // The ranges of each server's blocks, by socket.
  std::vector<std::vector<ElementRange>> ranges_;
  FloatBuffer contribution_;
  FloatBuffer weights_;
};

}  // namespace

BenchService RawExchangeServer(std::vector<RawSocket> sockets, const RawExchangePlan& plan,
                               uint32_t server) {
  auto process = std::make_shared<Server>(std::move(sockets), plan, server);
  return {.hello = Json::object(),
          .handle = [process](const Json& request) -> absl::StatusOr<Json> {
            RETURN_IF_ERROR(process->Run(request.value("clocks", uint64_t{0})));
            return Json::object();
          }};
}

BenchService RawExchangeWorker(std::vector<RawSocket> sockets, const RawExchangePlan& plan) {
  auto process = std::make_shared<RawWorker>(std::move(sockets), plan);
  return {.hello = Json::object(),
          .handle = [process](const Json& request) -> absl::StatusOr<Json> {
            ASSIGN_OR_RETURN(std::vector<double> seconds,
                             process->Run(request.value("clocks", uint64_t{0})));
            return Json{{"seconds", std::move(seconds)}};
          }};
}

}  // namespace leeway
