// What a job costs as its workers become many: one process simulates them (light_workers.h) against
// real servers.
//
//   growth_bench --workers 100,300,1000 --modes sync,bounded,async --registrations 1000,10000
//
// Memory of the servers a worker: once all are connected, and at the peak of the exchanges beyond
// the contributions that lie there at once in sync mode (all workers', of every block).
// "answered" is the time from a worker's own contribution until it has all its blocks, "released"
// the same from the last contribution to the clock: it includes moving the blocks to all workers.

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/resource.h>

#include "absl/strings/str_format.h"
#include "bench/base/bench_job.h"
#include "bench/base/bench_process.h"
#include "bench/base/percentiles_json.h"
#include "bench/base/real_servers.h"
#include "common/files/files.h"
#include "common/process/process.h"
#include "common/status.h"
#include "tests/bench/growth/light_workers.h"

namespace leeway {
namespace {

struct Flags {
  std::vector<uint32_t> workers = {100, 300, 1000};
  std::vector<std::string> modes = {"sync", "bounded", "async"};
  std::vector<uint32_t> registrations = {1000, 10000};
  uint32_t servers = 4;
  uint32_t blocks = 64;
  uint64_t block_bytes = 1024;
  uint64_t clocks = 10;
  uint32_t threads = 2;
  std::string program_folder;
  std::string json;
};

Json JsonOf(const LightRound& round) {
  return {{"seconds", round.seconds},
          {"requests", round.requests},
          {"repeated", round.repeated},
          {"answer_seconds", PercentilesOf(round.answer_seconds)},
          {"release_seconds", PercentilesOf(round.release_seconds)}};
}

// A process that runs the phase that it is told to run.
BenchService Simulator(const LightOptions& options) {
  auto* const workers = new LightWorkers(options);
  auto handle = [workers](const Json& request) -> absl::StatusOr<Json> {
    if (request.contains("register")) RETURN_IF_ERROR(workers->Register());
    if (request.contains("connect")) RETURN_IF_ERROR(workers->Connect());
    if (request.contains("leave")) RETURN_IF_ERROR(workers->Leave());
    if (!request.contains("clocks")) return Json::object();
    LightRound round;
    RETURN_IF_ERROR(workers->Run(request.value("clocks", uint64_t{1}), &round));
    return JsonOf(round);
  };
  return {.hello = Json::object(), .handle = handle};
}

absl::StatusOr<double> Timed(BenchProcess& process, const char* phase) {
  const Time began = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(process.Call({{phase, true}}).status());
  return Seconds(std::chrono::steady_clock::now() - began);
}

// The growth in KiB for each worker, over all servers.
double GrowthKib(const std::vector<uint64_t>& from, const std::vector<uint64_t>& to,
                 uint32_t workers) {
  const auto sum = [](const std::vector<uint64_t>& bytes) {
    return static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}));
  };
  return (sum(to) - sum(from)) / workers / 1024;
}

// The servers, and the process that simulates all workers.
struct Setting {
  std::unique_ptr<RealServers> servers;
  std::unique_ptr<BenchProcess> process;
};

absl::StatusOr<Setting> SetUp(const Flags& flags, const std::string& mode, uint32_t workers) {
  Setting setting;
  const std::string yaml = BenchJobYaml({.mode = mode,
                                         .servers = flags.servers,
                                         .workers = workers,
                                         .block_bytes = flags.block_bytes});
  ASSIGN_OR_RETURN(setting.servers, RealServers::Start(flags.program_folder, yaml, flags.servers));
  const LightOptions options{.coordinator = setting.servers->coordinator(),
                             .workers = workers,
                             .floats = flags.blocks * flags.block_bytes / sizeof(float),
                             .threads = flags.threads};
  ASSIGN_OR_RETURN(setting.process,
                   BenchProcess::Start("the workers", [&] { return Simulator(options); }));
  return setting;
}

absl::StatusOr<Json> Exchanges(const Flags& flags, const std::string& mode, uint32_t workers) {
  ASSIGN_OR_RETURN(const Setting setting, SetUp(flags, mode, workers));
  const RealServers& servers = *setting.servers;
  BenchProcess& process = *setting.process;
  ASSIGN_OR_RETURN(const double register_seconds, Timed(process, "register"));
  const auto registered = servers.MemoryBytes();
  ASSIGN_OR_RETURN(const double connect_seconds, Timed(process, "connect"));
  const auto connected = servers.MemoryBytes();
  // In the first clock all memory pages are cold.
  RETURN_IF_ERROR(process.Call({{"clocks", 1}}).status());
  const double cpu = servers.CpuSeconds();
  ASSIGN_OR_RETURN(Json row, process.Call({{"clocks", flags.clocks}}));
  const double in_flight_kib =
      mode == "sync" ? static_cast<double>(flags.blocks * flags.block_bytes) / 1024 : 0;
  row["server_cpu_us_per_request"] =
      (servers.CpuSeconds() - cpu) * 1e6 / row.value("requests", uint64_t{1});
  row["peak_kib_per_worker"] = GrowthKib(registered, servers.PeakBytes(), workers) - in_flight_kib;
  row["after_kib_per_worker"] = GrowthKib(registered, servers.MemoryBytes(), workers);
  row["in_flight_kib_per_worker"] = in_flight_kib;
  row["connected_kib_per_worker"] = GrowthKib(registered, connected, workers);
  row["register_seconds"] = register_seconds;
  row["connect_seconds"] = connect_seconds;
  row["requests_per_second"] = row.value("requests", 0.0) / row.value("seconds", 1.0);
  row["mode"] = mode;
  row["workers"] = workers;
  return row;
}

absl::StatusOr<Json> Registrations(const Flags& flags, uint32_t workers) {
  ASSIGN_OR_RETURN(const Setting setting, SetUp(flags, "async", workers));
  const auto before = setting.servers->MemoryBytes();
  const double cpu = setting.servers->CpuSeconds();
  ASSIGN_OR_RETURN(const double seconds, Timed(*setting.process, "register"));
  const double registered_cpu = setting.servers->CpuSeconds();
  const double kib = GrowthKib(before, setting.servers->MemoryBytes(), workers);
  ASSIGN_OR_RETURN(const double leave_seconds, Timed(*setting.process, "leave"));
  return Json{
      {"workers", workers},
      {"register_seconds", seconds},
      {"register_cpu_us_per_worker", (registered_cpu - cpu) * 1e6 / workers},
      {"leave_seconds", leave_seconds},
      {"leave_cpu_us_per_worker", (setting.servers->CpuSeconds() - registered_cpu) * 1e6 / workers},
      {"kib_per_worker", kib}};
}

// Formats milliseconds as "51.2/90.1".
std::string Times(const Json& row, const char* key) {
  const Json seconds = row.value(key, Json::object());
  return absl::StrFormat("%.0f/%.0f", 1e3 * seconds.value("p50", 0.0),
                         1e3 * seconds.value("p99", 0.0));
}

void Print(const Json& row) {
  const auto number = [&](const char* key) { return row.value(key, 0.0); };
  const bool sync = row.value("mode", "") == "sync";
  absl::PrintF("%-8s %7d %8.2f %8.2f %10.1f %10.1f %9.0f %12s %12s %8d %8.1f\n",
               row.value("mode", ""), row.value("workers", 0), number("register_seconds"),
               number("connect_seconds"), number("connected_kib_per_worker"),
               number("peak_kib_per_worker"), number("requests_per_second"),
               Times(row, "answer_seconds"), sync ? Times(row, "release_seconds") : "-",
               row.value("repeated", 0), number("server_cpu_us_per_request"));
  std::fflush(stdout);
}

void PrintHeading(const Flags& flags) {
  absl::PrintF("%u servers, %u blocks of %u bytes; memory is of all servers together\n\n",
               flags.servers, flags.blocks, flags.block_bytes);
  constexpr char kFormat[] = "%-8s %7s %8s %8s %10s %10s %9s %12s %12s %8s %8s\n";
  std::printf(kFormat, "mode", "workers", "register", "connect", "connected", "peak", "requests",
              "answered", "released", "repeated", "cpu us a");
  std::printf(kFormat, "", "", "s", "s", "KiB each", "KiB each", "a second", "p50/p99 ms",
              "p50/p99 ms", "", "request");
}

absl::Status RunAll(const Flags& flags) {
  Json exchanges = Json::array();
  Json registrations = Json::array();
  PrintHeading(flags);
  for (const std::string& mode : flags.modes) {
    for (const uint32_t workers : flags.workers) {
      ASSIGN_OR_RETURN(Json row, Exchanges(flags, mode, workers));
      Print(row);
      exchanges.push_back(std::move(row));
    }
  }
  for (const uint32_t workers : flags.registrations) {
    ASSIGN_OR_RETURN(Json row, Registrations(flags, workers));
    absl::PrintF(
        "%u registered: %.2f s, %.0f us of processor time and %.1f KiB each; left: %.2f s, %.0f "
        "us\n",
        workers, row.value("register_seconds", 0.0), row.value("register_cpu_us_per_worker", 0.0),
        row.value("kib_per_worker", 0.0), row.value("leave_seconds", 0.0),
        row.value("leave_cpu_us_per_worker", 0.0));
    std::fflush(stdout);
    registrations.push_back(std::move(row));
  }
  if (flags.json.empty()) return absl::OkStatus();
  const Json document = {{"exchanges", exchanges}, {"registrations", registrations}};
  return WriteFileAtomically(flags.json, document.dump(2) + "\n");
}

// Each connection takes a descriptor here and another in its server.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int Main(int argc, char** argv) {
  Flags flags;
  flags.program_folder = ProgramFolder();
  CLI::App app("What a job costs as its workers become many.", "growth_bench");
  app.add_option("--workers", flags.workers)->delimiter(',')->capture_default_str();
  app.add_option("--modes", flags.modes)->delimiter(',')->capture_default_str();
  app.add_option("--registrations", flags.registrations)->delimiter(',')->capture_default_str();
  app.add_option("--servers", flags.servers)->capture_default_str();
  app.add_option("--blocks", flags.blocks)->capture_default_str();
  app.add_option("--block-bytes", flags.block_bytes)->capture_default_str();
  app.add_option("--clocks", flags.clocks)->capture_default_str();
  app.add_option("--threads", flags.threads, "Of the simulating process")->capture_default_str();
  app.add_option("--programs", flags.program_folder, "Where leeway-server is")
      ->capture_default_str();
  app.add_option("--json", flags.json, "File to write");
  CLI11_PARSE(app, argc, argv);
  RaiseDescriptorLimit();
  const absl::Status status = RunAll(flags);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace leeway

int main(int argc, char** argv) { return leeway::Main(argc, argv); }
