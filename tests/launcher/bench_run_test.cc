// The benchmarks with tiny sizes: they count right and end. The tests check no speeds.
#include <algorithm>
#include <csignal>
#include <future>
#include <set>
#include <span>

#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/base/contribution.h"
#include "bench/bench_pair.h"
#include "bench/exchange_bench.h"
#include "bench/exchange_job.h"
#include "bench/exchange_report.h"
#include "bench/raw/raw_transfer.h"
#include "bench/transport_bench.h"
#include "common/files/files.h"
#include "common/process/process.h"
#include "common/process/process_usage.h"
#include "config/job.h"
#include "launcher/commands/command_support.h"
#include "launcher/doctor/job_exchange.h"
#include "launcher/doctor/peer.h"
#include "tests/catch.h"
#include "tests/launcher/bench_rig.h"
#include "tests/temp_folder.h"

namespace leeway::bench_run {
namespace {

using testing::kSeconds;
using testing::ReadJson;
using testing::Run;
using testing::Take;

TransferPlan SmallPlan(TransferMethod method) {
  return {.method = method,
          .message_bytes = 4096,
          .blocks = 8,
          .window = 4,
          .call_blocks = 4,
          .open_calls = 2};
}

TEST_CASE("A bench process answers, hands its errors over, and is gone when it is let go") {
  pid_t pid = 0;
  {
    auto process = Take(BenchProcess::Start("echo", []() -> absl::StatusOr<BenchService> {
      return BenchService{.hello = {{"hello", 7}},
                          .handle = [](const Json& request) -> absl::StatusOr<Json> {
                            if (request.contains("fail")) return absl::DataLossError("lost");
                            return request;
                          }};
    }));
    pid = process->pid();
    CHECK(process->hello().value("hello", 0) == 7);
    CHECK(Take(process->Call({{"x", 1.5}})).value("x", 0.0) == 1.5);
    const absl::Status failed = process->Call({{"fail", true}}).status();
    CHECK(absl::IsDataLoss(failed));
    CHECK(failed.message() == "echo: lost");
    CHECK(ProcessCpuSeconds(pid) > 0);
    CHECK(PeakMemoryBytes(pid) > 0);
  }
  CHECK(kill(pid, 0) == -1);
}

TEST_CASE("A bench process that cannot start or dies is an error that names it") {
  const auto broken = BenchProcess::Start(
      "broken", []() -> absl::StatusOr<BenchService> { return absl::NotFoundError("no data"); });
  CHECK(broken.status() == absl::NotFoundError("broken: no data"));
  auto dying = Take(BenchProcess::Start("dying", []() -> absl::StatusOr<BenchService> {
    return BenchService{.hello = {},
                        .handle = [](const Json&) -> absl::StatusOr<Json> { _exit(3); }};
  }));
  const absl::Status status = dying->Call({{"x", 1}}).status();
  CHECK(absl::IsUnavailable(status));
  CHECK(status.message().find("dying") != std::string::npos);
}

TEST_CASE("Raw transfers move whole messages each way over every transport, round after round") {
  for (const Wire wire : {Wire::kTcp, Wire::kUnix, Wire::kShm}) {
    for (const TransferMethod method :
         {TransferMethod::kPush, TransferMethod::kPull, TransferMethod::kPushPull}) {
      for (const uint64_t bytes : {uint64_t{4096}, uint64_t{3} << 20}) {
        TransferPlan plan = SmallPlan(method);
        plan.message_bytes = bytes;
        auto pair = Take(BenchPair::Raw(wire, plan));
        for (int round = 0; round < 3; ++round) {
          const TransferRound result = Take(pair->Run(kSeconds));
          CHECK(result.messages > 0);
          CHECK(result.seconds > 0);
          CHECK(result.cpu_seconds > 0);
        }
      }
    }
  }
}

TEST_CASE("A raw push adds what was sent to the parameters, as often as it says") {
  auto ends = Take(RawSocket::UnixPair());
  const TransferPlan plan = SmallPlan(TransferMethod::kPushPull);
  auto serving = std::async(std::launch::async, [&] {
    return RawTransferServer(std::move(ends.second), plan).handle({}).status();
  });
  // Three messages of ones to block 0 (a benchmark's client would go round); the last one ends the
  // round.
  std::vector<float> ones(plan.message_floats(), 1);
  std::vector<float> back(plan.message_floats());
  RawHeader header;
  for (uint64_t i = 0; i <= plan.blocks; ++i) {
    const bool last = i == plan.blocks;
    REQUIRE(ends.first.Send({.kind = last ? RawHeader::kEnd : RawHeader::kData}, ones).ok());
    REQUIRE(ends.first.Receive(header, back).ok());
  }
  CHECK(serving.get().ok());
  CHECK(header.kind == RawHeader::kEnd);
  // The ninth message to eight blocks is the second one to block 0.
  CHECK(back.back() == 1e-6f + 1e-6f);
}

TEST_CASE("Leeway's transfers count the blocks of whole calls and time each call") {
  for (const TransferMethod method :
       {TransferMethod::kPush, TransferMethod::kPull, TransferMethod::kPushPull}) {
    const TransferPlan plan = SmallPlan(method);
    auto pair = Take(BenchPair::Leeway(Wire::kTcp, "none", plan));
    const TransferRound round = Take(pair->Run(kSeconds));
    CHECK(round.messages > 0);
    CHECK(round.messages % plan.call_blocks == 0);
    REQUIRE(round.latency.has_value());
    CHECK(round.latency->p50 > 0);
    CHECK(round.latency->p50 <= round.latency->max);
    CHECK(pair->server_peak_bytes() > plan.total_bytes());
  }
}

TEST_CASE("leeway bench transport writes what it measured as JSON") {
  const TempFolder folder;
  REQUIRE(Run({"bench", "transport", "--transports", "tcp,unix", "--methods", "push", "--sizes",
               "4K", "--rounds", "2", "--seconds", "0.02", "--json", folder / "out.json"}) == 0);
  const Json document = ReadJson(folder / "out.json");
  CHECK(document.value("bench", "") == "transport");
  CHECK(document["host"].value("processors", 0) > 0);
  CHECK(document.value("seconds", 0.0) == 0.02);
  const Json& transfers = document["results"]["transfers"];
  REQUIRE(transfers.size() == 2);
  CHECK(transfers[0].value("transport", "") == "tcp");
  CHECK(transfers[1].value("transport", "") == "unix");
  for (const Json& row : transfers) {
    CHECK(row.value("block_bytes", 0) == 4096);
    CHECK(row.value("share", 0.0) > 0);
    CHECK(row.value("cpu_ratio", 0.0) > 0);
    for (const char* side : {"leeway", "raw"}) {
      const double messages = row[side].value("messages_per_second", 0.0);
      CHECK(messages > 0);
      CHECK(row[side].value("gigabytes_per_second", 0.0) == Approx(messages * 4096e-9));
      CHECK(row[side]["rounds_messages_per_second"].size() == 2);
    }
  }
  // 64 calls one at a time, and one call of 64 blocks, on each transport.
  const Json& exchanges = document["results"]["exchanges"];
  REQUIRE(exchanges.size() == 6);
  for (const Json& row : exchanges) {
    CHECK(row.value("ratio", 0.0) > 0);
    CHECK(row["ping"]["latency_seconds"].value("p50", 0.0) > 0);
  }
}

TEST_CASE("A transfer's codec is that of what travels, and what would have none is refused") {
  const TempFolder folder;
  const auto rows = [&](const std::string& codec, const std::string& methods) {
    REQUIRE(Run({"bench", "transport", "--transports", "tcp", "--methods", methods, "--sizes",
                 "64K", "--codecs", codec, "--transfers-only", "--rounds", "1", "--seconds", "0.02",
                 "--json", folder / "out.json"}) == 0);
    return ReadJson(folder / "out.json")["results"]["transfers"];
  };
  for (const Json& row : rows("none", "push,pull,push_pull")) {
    CHECK(row.value("travel_share", 0.0) == Approx(1).margin(0.01));
  }
  for (const Json& row : rows("bf16", "push,pull,push_pull")) {
    CHECK(row.value("travel_share", 0.0) == Approx(0.5).margin(0.01));
    CHECK(row.value("reply_codec", "") == "bf16");
  }
  // Only pushed values are encoded.
  const Json both = rows("sign", "push_pull");
  CHECK(both[0].value("reply_codec", "") == "none");
  CHECK(both[0].value("travel_share", 0.0) == Approx(0.5 + 0.035 / 2).margin(0.01));
  CHECK(Run({"bench", "transport", "--methods", "push,pull", "--codecs", "none,top_k"}) == 2);
  CHECK(Run({"bench", "transport", "--exchanges-only", "--codecs", "bf16"}) == 2);
}

TEST_CASE("Contributions that nobody computed have hardly two values the same") {
  std::vector<float> values(1 << 18);
  FillContribution(0, values);
  const auto distinct = [](std::span<const float> part) {
    return std::set<float>(part.begin(), part.end()).size();
  };
  const std::span<const float> all(values);
  CHECK(distinct(all.first(1 << 16)) > 60'000);
  // Two blocks are not equal, either.
  CHECK_FALSE(std::equal(all.begin(), all.begin() + 1024, all.begin() + (1 << 16)));
  std::vector<float> other(1024);
  FillContribution(1, other);
  CHECK_FALSE(std::equal(other.begin(), other.end(), all.begin()));
}

TEST_CASE("leeway bench exchange runs real servers beside raw sockets and counts every byte") {
  const TempFolder folder;
  REQUIRE(Run({"bench",        "exchange", "--parameters", "10K",
               "--servers",    "2",        "--workers",    "2",
               "--transports", "tcp",      "--update",     "adam",
               "--block",      "4K",       "--rounds",     "2",
               "--seconds",    "0.02",     "--json",       folder / "out.json"}) == 0);
  const Json document = ReadJson(folder / "out.json");
  CHECK(document["results"].value("servers", 0) == 2);
  const Json& row = document["results"]["rows"][0];
  CHECK(row.value("parameters", 0) == 10'000);
  CHECK(row.value("block_bytes", 0) == 4096);
  for (const char* side : {"leeway", "raw"}) {
    CHECK(row[side].value("gigabytes_per_second", 0.0) > 0);
    const Json& step = row[side]["step_seconds"];
    CHECK(step.value("p50", 0.0) > 0);
    CHECK(step.value("p50", 0.0) <= step.value("p99", 0.0));
    // 160 kB a step: this checks the units, with a margin for the unequal steps of a busy machine.
    CHECK(row[side].value("gigabytes_per_second", 0.0) < 1.6e-4 / step.value("p50", 1.0) * 100);
  }
  CHECK(row.value("server_peak_bytes", uint64_t{0}) > 0);
  // 5,000 parameters, all but a block of them, x (2 + 2), and what is in flight.
  CHECK(row.value("server_bound_bytes", uint64_t{0}) > 5000 * 4 * 4);
}

TEST_CASE("A raw limit that was not measured is not written as if it were 0") {
  const TempFolder folder;
  REQUIRE(Run({"bench", "exchange", "--parameters", "10K", "--workers", "1", "--transports", "tcp",
               "--no-raw", "--rounds", "1", "--seconds", "0.02", "--json", folder / "out.json"}) ==
          0);
  const Json row = ReadJson(folder / "out.json")["results"]["rows"][0];
  CHECK(row["leeway"].value("gigabytes_per_second", 0.0) > 0);
  for (const char* name : {"raw", "share", "cpu_ratio"}) CHECK_FALSE(row.contains(name));
  const std::string table = ExchangeTable({}, {ExchangeResult{}});
  CHECK(std::count(table.begin(), table.end(), '-') == 5);
}

// Limits the size of files, including shared memory, while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*const handler_)(int);
  rlimit before_{};
};

TEST_CASE("What was measured before a failure is written beside it") {
  const TempFolder folder;
  int code = 0;
  {
    // Enough for the server of the small blocks.
    const FileSizeLimit limit(512 << 20);
    code = Run({"bench", "transport", "--transports", "tcp", "--methods", "push", "--sizes",
                "4K,16M", "--rounds", "1", "--seconds", "0.02", "--json", folder / "out.json"});
  }
  CHECK(code == 1);
  const Json document = ReadJson(folder / "out.json");
  CHECK(document["results"]["transfers"].size() == 1);
  CHECK(document["results"]["exchanges"].empty());
  CHECK_THAT(document.value("error", ""), Catch::Contains("push of 16384 KiB over tcp"));
}

TEST_CASE("An exchange that fails keeps those before it") {
  const TempFolder folder;
  const std::string link = folder / "leeway-server";
  REQUIRE(symlink((ProgramFolder() + "/leeway-server").c_str(), link.c_str()) == 0);
  int begun = 0;
  ExchangeBenchOptions options{.workers = 1,
                               .parameters = {10'000, 20'000},
                               .wires = {Wire::kTcp},
                               .rounds = 1,
                               .seconds = kSeconds,
                               .raw = false,
                               .program_folder = folder.path()};
  options.progress = [&](const std::string&) {
    if (++begun == 2) unlink(link.c_str());
  };
  std::vector<ExchangeResult> results;
  const absl::Status measured = BenchExchange(options, results);
  CHECK_THAT(std::string(measured.message()), Catch::Contains("exchange of 20000 parameters"));
  REQUIRE(results.size() == 1);
  CHECK(results[0].parameters == 10'000);
}

TEST_CASE("leeway bench update prints a row for each rule") {
  const TempFolder folder;
  REQUIRE(Run({"bench", "update", "--rules", "sgd,adam", "--contributions", "1,2", "--threads", "1",
               "--shard", "1M", "--block", "64K", "--rounds", "2", "--json",
               folder / "out.json"}) == 0);
  const Json document = ReadJson(folder / "out.json");
  // Its rounds have no set length.
  CHECK(document.value("rounds", 0) == 2);
  CHECK_FALSE(document.contains("seconds"));
  REQUIRE(document["results"].size() == 4);
  for (const Json& row : document["results"]) {
    CHECK(row.value("share", 0.0) > 0);
    CHECK(row.value("limit_bytes_per_second", 0.0) > 0);
    CHECK(row.value("axpy_bytes_per_second", 0.0) > 0);
  }
}

TEST_CASE("Benchmarks refuse what they do not know with exit code 2") {
  CHECK(Run({"bench"}) == 2);
  CHECK(Run({"bench", "transport", "--sizes", "100"}) == 2);
  CHECK(Run({"bench", "transport", "--methods", "shove"}) == 2);
  CHECK(Run({"bench", "transport", "--transports", "carrier-pigeon"}) == 2);
  CHECK(Run({"bench", "transport", "--codec", "zip", "--sizes", "4K"}) == 2);
  CHECK(Run({"bench", "exchange", "--update", "magic"}) == 2);
  CHECK(Run({"bench", "update", "--rules", "magic"}) == 2);
  // It refuses a size of nothing, and one that is larger than the memory.
  CHECK(Run({"bench", "update", "--shard", "3"}) == 2);
  CHECK(Run({"bench", "update", "--shard", "900G"}) == 2);
  CHECK(Run({"bench", "exchange", "--parameters", "900G"}) == 2);
  CHECK(Run({"bench", "transport", "--seconds", "3600"}) == 2);
  CHECK(Run({"doctor", "--seconds", "0"}) == 2);
}

TEST_CASE("A raw exchange whose server dies is an error at once, not a wait") {
  const RawExchangePlan plan{.total_floats = 4096, .servers = 2, .block_floats = 1024};
  auto group = Take(RawExchangeGroup::Start(plan, Wire::kUnix, 2));
  CHECK(Take(group->Run(3, kSeconds)).step_seconds.size() == 6);
  const Time began = std::chrono::steady_clock::now();
  kill(group->servers()[1]->pid(), SIGKILL);
  CHECK(absl::IsUnavailable(group->Run(3, kSeconds).status()));
  // The workers see that their sockets are closed, because no other process holds the other end. So
  // no worker is stuck, and destroying the group takes no time.
  group.reset();
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(4));
}

TEST_CASE("Exchanges of a compressed job are those of its codec") {
  v1::TrainingJob job = Take(LoadJob(LEEWAY_SOURCE_DIR "/config/jobs/quickstart.yaml", {}));
  JobExchangeOptions options{.job = job,
                             .schema = VectorSchema(200'000),
                             .servers = 1,
                             .workers = 1,
                             .program_folder = ProgramFolder(),
                             .seconds = kSeconds};
  v1::TrainingJob coded = job;
  coded.mutable_compression()->mutable_contributions()->mutable_top_k()->set_share(0.5);
  // Half of the values are selected and written one by one, which is several times the work of a
  // copy. A busy machine may hide that in one measurement, but not in three.
  bool more_work = false;
  for (int attempt = 0; attempt < 3 && !more_work; ++attempt) {
    options.job = job;
    const JobExchange plain = Take(MeasureJobExchange(options));
    CHECK(plain.seconds > 0);
    options.job = coded;
    more_work = Take(MeasureJobExchange(options)).cpu_seconds > 1.5 * plain.cpu_seconds;
  }
  CHECK(more_work);
}

}  // namespace
}  // namespace leeway::bench_run
