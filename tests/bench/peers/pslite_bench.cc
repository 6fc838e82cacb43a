// Transfers through dmlc/ps-lite, to be measured beside `leeway bench transport`: one worker and
// one server that keeps an array of floats a block and adds what is pushed. pslite.py builds and
// runs it.
//
// Usage: pslite_bench push|pull|push_pull BLOCK_BYTES BLOCKS IN_FLIGHT SECONDS
// Each role of DMLC_ROLE is a process. The worker prints "MESSAGES SECONDS" of one round, after a
// round that does not count.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/memory.h"
#include "ps/ps.h"

namespace {

// Their product is 1, so that each float of the server counts the pushes exactly.
constexpr float kContribution = 2.0f;
constexpr float kRate = 0.5f;

struct Plan {
  bool push = false;
  bool pull = false;
  size_t floats = 0;
  size_t blocks = 0;
  size_t in_flight = 0;
  double seconds = 0;
};

// The server's parameters. Replies are sent out of them without a copy, which is ps-lite at its
// fastest: one half of a reply may be from before an update and the other from after it.
class Parameters {
 public:
  explicit Parameters(const Plan& plan) : blocks_(plan.blocks) {
    for (auto& block : blocks_) block.resize(plan.floats);
  }

  void Answer(const ps::KVMeta& request, const ps::KVPairs<float>& data,
              ps::KVServer<float>* server) {
    ps::SArray<float>& block = blocks_.at(data.keys[0]);
    if (request.push) Add(data.vals, block);
    ps::KVPairs<float> reply;
    if (request.pull) {
      reply.keys = data.keys;
      reply.vals = block;
    }
    server->Response(request, reply);
  }

 private:
  static void Add(const ps::SArray<float>& contribution, ps::SArray<float>& block) {
    const float* x = contribution.data();
    float* y = block.data();
    for (size_t i = 0; i < block.size(); ++i) y[i] += kRate * x[i];
  }

  std::vector<ps::SArray<float>> blocks_;
};

class Worker {
 public:
  explicit Worker(const Plan& plan) : plan_(plan), pushes_(plan.blocks, 0) {
    for (size_t i = 0; i < plan.blocks; ++i) {
      keys_.emplace_back(1, i);
      contributions_.emplace_back(plan.floats, kContribution);
      weights_.emplace_back(plan.floats);
    }
  }

  struct Round {
    size_t messages = 0;
    double seconds = 0;
  };

  Round Run() {
    using Clock = std::chrono::steady_clock;
    const auto began = Clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(Clock::now() - began).count();
    };
    Round round;
    for (; elapsed() < plan_.seconds; ++round.messages) {
      if (open_.size() == plan_.in_flight) AwaitOldest();
      Begin();
    }
    while (!open_.empty()) AwaitOldest();
    round.seconds = elapsed();
    return round;
  }

  // Whether every push was added once to its whole block, and every pull has brought its block.
  bool EverythingArrived() {
    if (missing_ > 0) return false;
    for (size_t i = 0; i < plan_.blocks; ++i) {
      client_.Wait(client_.ZPull(keys_[i], &weights_[i]));
      for (const float value : weights_[i]) {
        if (value != static_cast<float>(pushes_[i])) return false;
      }
    }
    return true;
  }

 private:
  struct Open {
    int ticket;
    size_t block;
  };

  float& LastOf(size_t block) { return weights_[block][plan_.floats - 1]; }

  void Begin() {
    if (plan_.pull) LastOf(next_) = std::numeric_limits<float>::quiet_NaN();
    pushes_[next_] += plan_.push;
    open_.push_back({Send(next_), next_});
    next_ = (next_ + 1) % plan_.blocks;
  }

  int Send(size_t block) {
    if (!plan_.pull) return client_.ZPush(keys_[block], contributions_[block]);
    if (!plan_.push) return client_.ZPull(keys_[block], &weights_[block]);
    return client_.ZPushPull(keys_[block], contributions_[block], &weights_[block]);
  }

  void AwaitOldest() {
    client_.Wait(open_.front().ticket);
    if (plan_.pull && std::isnan(LastOf(open_.front().block))) ++missing_;
    open_.pop_front();
  }

  const Plan plan_;
  ps::KVWorker<float> client_{0, 0};
  std::vector<ps::SArray<ps::Key>> keys_;
  std::vector<ps::SArray<float>> contributions_;
  std::vector<ps::SArray<float>> weights_;
  std::vector<size_t> pushes_;
  std::deque<Open> open_;
  size_t next_ = 0;
  size_t missing_ = 0;
};

// Returns false if the arguments are not a valid plan.
bool Parse(int argc, char** argv, Plan& plan) {
  if (argc != 6) return false;
  const std::string method = argv[1];
  plan.push = method == "push" || method == "push_pull";
  plan.pull = method == "pull" || method == "push_pull";
  plan.floats = strtoull(argv[2], nullptr, 10) / sizeof(float);
  plan.blocks = strtoull(argv[3], nullptr, 10);
  plan.in_flight = strtoull(argv[4], nullptr, 10);
  plan.seconds = strtod(argv[5], nullptr);
  // A block has at most one message in flight.
  return (plan.push || plan.pull) && plan.floats > 0 && plan.in_flight > 0 &&
         plan.in_flight <= plan.blocks && plan.seconds > 0;
}

bool Measure(const Plan& plan) {
  Worker worker(plan);
  worker.Run();
  const Worker::Round round = worker.Run();
  if (!worker.EverythingArrived()) {
    fprintf(stderr, "pslite_bench: a message was lost, or added more than once\n");
    return false;
  }
  printf("%zu %.6f\n", round.messages, round.seconds);
  // Flushed now: ps-lite may crash as it ends, and the result must not be lost.
  fflush(stdout);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  leeway::TameMalloc();
  Plan plan;
  if (!Parse(argc, argv, plan)) {
    fprintf(stderr,
            "usage: pslite_bench push|pull|push_pull BLOCK_BYTES BLOCKS IN_FLIGHT SECONDS, "
            "with no more in flight than blocks\n");
    return 2;
  }
  ps::Start(0);
  bool fine = true;
  if (ps::IsServer()) {
    auto* server = new ps::KVServer<float>(0);
    auto parameters = std::make_shared<Parameters>(plan);
    server->set_request_handle([parameters](const auto& request, const auto& data, auto* from) {
      parameters->Answer(request, data, from);
    });
    ps::RegisterExitCallback([server] { delete server; });
  }
  // Start() has a barrier, but the server has no handler yet after it: an early request would kill
  // the server.
  if (!ps::IsScheduler()) {
    ps::Postoffice::Get()->Barrier(0, ps::kWorkerGroup + ps::kServerGroup);
  }
  if (ps::IsWorker()) fine = Measure(plan);
  ps::Finalize(0, true);
  return fine ? 0 : 1;
}
