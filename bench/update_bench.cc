#include "bench/update_bench.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <utility>

#include "bench/base/statistics.h"
#include "bench/raw/axpy.h"
#include "common/blocks.h"
#include "common/buffer.h"
#include "common/clock.h"
#include "common/philox.h"
#include "common/update/rule.h"
#include "common/wire/payload.h"
#include "leeway/v1/job.pb.h"
#include "server/store/block_store.h"

namespace leeway {
namespace {

constexpr char kCheck[] = "check";
constexpr char kElastic[] = "elastic";

// Returns null for an unknown name. For "check" returns some rule, which is not used.
std::unique_ptr<UpdateRule> RuleNamed(const std::string& name) {
  if (name == kElastic) return MakeElasticRule(0.01);
  v1::Update update;
  if (name == "sgd" || name == kCheck) {
    update.mutable_sgd();
  } else if (name == "momentum" || name == "nesterov") {
    update.mutable_sgd()->set_momentum(0.9);
    update.mutable_sgd()->set_nesterov(name == "nesterov");
  } else if (name == "adagrad") {
    update.mutable_adagrad();
  } else if (name == "adam") {
    update.mutable_adam();
  } else if (name == "adamw") {
    update.mutable_adamw();
  } else if (name == "lion") {
    update.mutable_lion();
  } else {
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<UpdateRule>> rule = MakeUpdateRule(update);
  return rule.ok() ? *std::move(rule) : nullptr;
}

// Returns the seconds until `work(i)` has returned on all `threads`.
double TimeOnThreads(uint32_t threads, const std::function<void(uint32_t)>& work) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> others;
  for (uint32_t i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& thread : others) thread.join();
  return Seconds(std::chrono::steady_clock::now() - start);
}

// Contributions of one block each, used in turn. Together they are so large that a contribution has
// left the caches when its turn comes again.
class Arrivals {
 public:
  Arrivals(uint64_t floats, uint64_t block, bool pieces) {
    RandomStream random(1, RandomPurpose::kGenerate, {pieces});
    const uint64_t count = std::max<uint64_t>((2 * floats + block - 1) / block, 16);
    memory_ = FloatBuffer(count * (block + kSlackFloats));
    std::ranges::fill(memory_.span(), 0.01f);
    std::vector<float> values(block);
    for (uint64_t i = 0; i < block; ++i) values[i] = 0.01f + 1e-3f * static_cast<float>(i % 8);
    for (uint64_t i = 0; i < count; ++i) Add(values, pieces, random);
  }

  std::span<float> memory() { return memory_.span(); }
  const FloatPayload* At(uint64_t index) const { return &payloads_[index % payloads_.size()]; }

 private:
  // The most bytes in the first piece. A network delivers this piece into the rest of the memory in
  // which the previous message ended (common/rpc/channel.cc).
  static constexpr uint64_t kFirstPieceBytesMax = 256 << 10;
  static constexpr uint64_t kLineBytes = 64;
  // Extra memory for each contribution, because its pieces may begin anywhere in a cache line.
  static constexpr uint64_t kSlackFloats = 4 * kLineBytes / sizeof(float);

  void Add(const std::vector<float>& values, bool pieces, RandomStream& random) {
    auto* bytes = reinterpret_cast<uint8_t*>(memory_.data() + used_);
    used_ += values.size() + kSlackFloats;
    const uint64_t total = values.size() * sizeof(float);
    const uint64_t cut = pieces ? std::min(1 + random.Below(kFirstPieceBytesMax), total) : total;
    FloatPayload::PieceList parts;
    for (const auto& [begin, end] : {std::pair{uint64_t{0}, cut}, std::pair{cut, total}}) {
      if (begin == end) continue;
      if (pieces) bytes += random.Below(kLineBytes);
      std::memcpy(bytes, reinterpret_cast<const uint8_t*>(values.data()) + begin, end - begin);
      parts.emplace_back(bytes, end - begin);
      bytes += (end - begin + kLineBytes - 1) / kLineBytes * kLineBytes;
    }
    payloads_.emplace_back(nullptr, std::move(parts));
  }

  FloatBuffer memory_;
  uint64_t used_ = 0;
  std::vector<FloatPayload> payloads_;
};

// The rates of the memory, measured on the contributions' own memory.
class Limit {
 public:
  explicit Limit(std::span<float> memory)
      : x_(memory.first(memory.size() / 2)), y_(memory.last(memory.size() / 2)) {}

  struct Rates {
    // The bytes a second of `y += a x`, which reads two streams and writes one stream, and the
    // bytes a second of reading two streams.
    double axpy = 0;
    double read = 0;
  };

  Rates Measure(uint32_t threads) {
    const double bytes = sizeof(float) * static_cast<double>(x_.size());
    const double axpy =
        TimeOnThreads(threads, [&](uint32_t i) { Axpy(Begin(i, threads), Begin(i + 1, threads)); });
    const double read =
        TimeOnThreads(threads, [&](uint32_t i) { Read(Begin(i, threads), Begin(i + 1, threads)); });
    return {3 * bytes / axpy, 2 * bytes / read};
  }

 private:
  size_t Begin(uint32_t thread, uint32_t threads) const { return x_.size() * thread / threads; }

  void Axpy(size_t begin, size_t end) {
    // The factor is so small that the values do not change.
    AddScaled(1e-12f, x_.subspan(begin, end - begin), y_.subspan(begin, end - begin));
  }

  void Read(size_t begin, size_t end) {
    constexpr size_t kLanes = 32;
    float sums[kLanes] = {};
    for (size_t i = begin; i + kLanes <= end; i += kLanes) {
      for (size_t j = 0; j < kLanes; ++j) sums[j] += x_[i + j] * y_[i + j];
    }
    sink_.store(std::accumulate(sums, sums + kLanes, 0.0f), std::memory_order_relaxed);
  }

  const std::span<float> x_;
  const std::span<float> y_;
  // Keeps the compiler from removing the reads.
  std::atomic<float> sink_{0};
};

// One way to update a shard, and its times by round.
struct Case {
  uint32_t contributions = 0;
  const Arrivals* arrivals = nullptr;
  bool pieces = false;
  uint32_t threads = 0;
  std::vector<double> seconds, axpy, limits, shares;
};

// A shard with one rule.
class Subject {
 public:
  Subject(const UpdateBenchOptions& options, const std::string& name, bool keep_previous,
          const Arrivals& values)
      : check_only_(name == kCheck),
        keep_previous_(keep_previous),
        layout_(BlockLayout::ForModel(options.shard_bytes / sizeof(float), 1, options.block_bytes)),
        store_(layout_, 0, RuleNamed(name),
               {.trained = layout_.total(),
                .elastic = name == kElastic,
                .keep_previous = keep_previous}) {
    for (uint32_t block = 0; block < layout_.blocks(); ++block) {
      store_.Set(block, *values.At(block));
    }
  }

  uint32_t blocks() const { return layout_.blocks(); }
  // Returns the bytes of one contribution for the whole shard.
  double gradient_bytes() const { return sizeof(float) * static_cast<double>(layout_.total()); }
  double moved_bytes(uint32_t contributions) const {
    return (contributions + fetched() + 2 * state()) * gradient_bytes();
  }
  // Returns the rate at which the memory could move these streams. A written stream with two read
  // streams counts at the rate of `y += a x`, a further read stream at the rate of reading.
  double bound(uint32_t contributions, const Limit::Rates& rates) const {
    const double read = contributions + fetched() + state();
    const double rest = std::max(read - 2 * state(), 0.0);
    const double streams = read + state();
    return streams / ((streams - rest) / rates.axpy + rest / rates.read);
  }

  // Returns the seconds of one update of all blocks. A small shard is updated many times, so that
  // the time can be measured.
  double Measure(const Case& test) {
    const auto passes = static_cast<uint32_t>(kBytesMin / gradient_bytes()) + 1;
    return TimeOnThreads(test.threads,
                         [&](uint32_t thread) {
                           std::vector<const FloatPayload*> contributions(test.contributions);
                           const ContributionWeights weights(
                               test.contributions, {.trained = 1.0f / test.contributions});
                           for (uint32_t pass = 0; pass < passes; ++pass) {
                             for (uint32_t block = thread; block < layout_.blocks();
                                  block += test.threads) {
                               for (uint32_t i = 0; i < test.contributions; ++i) {
                                 contributions[i] =
                                     test.arrivals->At(uint64_t{block} * test.contributions + i);
                               }
                               Update(block, contributions, weights);
                             }
                           }
                         }) /
           passes;
  }

 private:
  // Returns the number of streams that the processor fetches only because they are written. If the
  // next version is in another buffer, its cache lines are such a stream.
  double fetched() const { return keep_previous_ && !check_only_ ? 1 : 0; }
  // Returns the number of streams that are both read and written.
  double state() const {
    return check_only_ ? 0 : 1 + static_cast<double>(store_.slot_names().size());
  }

  // The least number of bytes in one measurement. With fewer bytes the time for starting threads
  // would count too much.
  static constexpr double kBytesMin = 50e6;

  void Update(uint32_t block, const std::vector<const FloatPayload*>& contributions,
              const ContributionWeights& weights) {
    if (check_only_) {
      for (const FloatPayload* payload : contributions) {
        if (payload->FirstNonFinite() != payload->size()) bad_.store(true);
      }
      return;
    }
    BlockWrite write = store_.Begin(block);
    store_.Run(block, write, contributions, weights, {.learning_rate = 1e-4f, .number = 10});
    store_.Commit(block, std::move(write));
  }

  const bool check_only_;
  const bool keep_previous_;
  const BlockLayout layout_;
  BlockStore store_;
  // Keeps the compiler from removing the check.
  std::atomic<bool> bad_{false};
};

void MeasureRound(Subject& subject, Limit& limit, std::vector<Case>& cases, bool counts) {
  for (Case& test : cases) {
    const Limit::Rates before = limit.Measure(test.threads);
    const double seconds = subject.Measure(test);
    const Limit::Rates after = limit.Measure(test.threads);
    if (!counts) continue;
    const Limit::Rates rates = {(before.axpy + after.axpy) / 2, (before.read + after.read) / 2};
    const double bound = subject.bound(test.contributions, rates);
    test.seconds.push_back(seconds);
    test.axpy.push_back(rates.axpy);
    test.limits.push_back(bound);
    test.shares.push_back(subject.moved_bytes(test.contributions) / seconds / bound);
  }
}

UpdateResult ResultOf(const Subject& subject, const Case& test) {
  const double seconds = Median(test.seconds);
  UpdateResult result;
  result.contributions = test.contributions;
  result.pieces = test.pieces;
  result.threads = test.threads;
  result.gradient_bytes_per_second = subject.gradient_bytes() / seconds;
  result.moved_bytes_per_second = subject.moved_bytes(test.contributions) / seconds;
  result.axpy_bytes_per_second = Median(test.axpy);
  result.limit_bytes_per_second = Median(test.limits);
  result.share = Median(test.shares);
  result.seconds_per_block = seconds / subject.blocks();
  return result;
}

}  // namespace

const std::vector<std::string>& UpdateBenchRules() {
  static const auto& names = *new std::vector<std::string>{
      "sgd", "momentum", "nesterov", "adagrad", "adam", "adamw", "lion", kElastic, kCheck};
  return names;
}

std::vector<UpdateResult> BenchUpdates(const UpdateBenchOptions& options) {
  const uint64_t floats = options.shard_bytes / sizeof(float);
  const uint64_t block = BlockLayout::ForModel(floats, 1, options.block_bytes).block_elements();
  Arrivals whole(floats, block, false);
  const Arrivals split(floats, block, true);
  Limit limit(whole.memory());
  std::vector<Case> cases;
  for (const uint32_t k : options.contributions) {
    for (const bool pieces : options.pieces) {
      for (const uint32_t threads : options.threads) {
        cases.push_back({k, pieces ? &split : &whole, pieces, threads, {}, {}, {}, {}});
      }
    }
  }
  std::vector<UpdateResult> results;
  for (const std::string& rule : options.rules) {
    if (RuleNamed(rule) == nullptr) continue;
    for (const bool keep_previous : options.keep_previous) {
      Subject subject(options, rule, keep_previous, whole);
      std::vector<Case> measured = cases;
      for (uint32_t round = 0; round <= options.rounds; ++round) {
        MeasureRound(subject, limit, measured, round > 0);
      }
      for (const Case& test : measured) {
        UpdateResult& result = results.emplace_back(ResultOf(subject, test));
        result.rule = rule;
        result.keep_previous = keep_previous;
      }
    }
  }
  return results;
}

}  // namespace leeway
