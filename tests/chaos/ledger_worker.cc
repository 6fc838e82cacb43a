// leeway-ledger-worker: the worker of tests/chaos/ledger_life.h as a process. It writes a line
// "incarnation generation clock" for each contribution whose push was answered.
// tests/chaos/ledger.py compares the lines with what the servers have at the end.
//
// Exit status: 0 done; 2 wrong arguments; 3 what it has read cannot be; anything else: start it
// again.

#include <string>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/command_line/security_flags.h"
#include "common/identity.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/rpc/channel.h"
#include "common/rpc/transport_security.h"
#include "tests/chaos/ledger_life.h"

namespace leeway::testing {
namespace {

constexpr int kUsage = 2;
constexpr int kImpossible = 3;

struct Flags {
  LedgerWorker worker;
  std::string told;
  int step_milliseconds = 3;
  SecurityFlags security;
  LogOptions log;
};

// The file of what this rank was told. When Add returns, the line is in the file, whatever happens
// to the process.
class Told {
 public:
  explicit Told(const std::string& path)
      : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {}
  ~Told() {
    if (file_ >= 0) close(file_);
  }
  absl::Status Add(const v1::RegisterWorkerReply& life, uint64_t clock) const {
    const std::string line =
        absl::StrCat(life.incarnation(), " ", life.generation(), " ", clock, "\n");
    const bool written =
        file_ >= 0 && write(file_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    return written ? absl::OkStatus() : absl::DataLossError("--told: cannot be written to");
  }

 private:
  const int file_;
};

int Main(int argc, char** argv) {
  TameMalloc();
  PrepareGrpc();
  Flags flags;
  CLI::App app("A worker whose contributions can be counted in the weights.",
               "leeway-ledger-worker");
  app.add_option("--coordinator", flags.worker.coordinator, "Address of server 0")->required();
  app.add_option("--rank", flags.worker.rank, "Place among the workers")->required();
  app.add_option("--told", flags.told, "Append what this worker is told there")->required();
  app.add_option("--blocks", flags.worker.blocks, "Of the model");
  app.add_option("--step-milliseconds", flags.step_milliseconds, "How long a step takes");
  app.add_option("--push-every", flags.worker.push_every, "Push and Pull at every so many clocks");
  app.add_flag("--unary", flags.worker.unary, "Calls of their own in place of streams");
  app.add_option("--forget-at", flags.worker.forget_at, "A fault: send nothing at this clock");
  app.add_option("--repeat-at", flags.worker.repeat_at,
                 "A fault: send the clock before's again with it");
  app.add_option("--log-file", flags.log.file, "Append log lines there");
  DeclareSecurity(app, flags.security, EndOfCalls::kCalls);
  CLI11_PARSE(app, argc, argv);
  flags.log.role = absl::StrCat("ledger worker ", flags.worker.rank);
  auto security = SettingsOf(flags.security, {}, EndOfCalls::kCalls);
  if (!SetUpLog(flags.log).ok() || !security.ok()) return kUsage;
  SetProcessSecurity(*std::move(security));
  const Told told(flags.told);
  flags.worker.nonce = RandomIdentity();
  flags.worker.compute = [&flags](uint64_t) { poll(nullptr, 0, flags.step_milliseconds); };
  flags.worker.tell = [&told](const auto& life, uint64_t clock) { return told.Add(life, clock); };
  const absl::Status status = RunLedgerWorker(flags.worker);
  if (status.ok()) return 0;
  spdlog::error("{}", status.ToString());
  return absl::IsDataLoss(status) ? kImpossible : 1;
}

}  // namespace
}  // namespace leeway::testing

int main(int argc, char** argv) { return leeway::testing::Main(argc, argv); }
