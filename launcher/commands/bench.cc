// leeway bench: measures how fast the data path is, next to the raw limits of the machine, in one
// run.
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "bench/base/bench_options.h"
#include "bench/exchange_bench.h"
#include "bench/exchange_report.h"
#include "bench/transport_bench.h"
#include "bench/transport_report.h"
#include "bench/update_report.h"
#include "common/files/files.h"
#include "common/machine.h"
#include "common/process/process.h"
#include "common/status.h"
#include "common/text/format.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"

namespace leeway {
namespace {

// All codecs except auto, which chooses one of these.
const std::vector<std::string> kCodecs = {"none", "bf16", "fp16", "int8", "top_k", "sign"};

// The flags of every benchmark.
struct CommonFlags {
  RoundOptions rounds;
  // Whether a flag sets the length of a round (rounds.seconds). If not, the benchmark itself
  // decides.
  bool timed = true;
  std::string json;
};

void AddRounds(CLI::App& command, CommonFlags& flags) {
  command.add_option("--rounds", flags.rounds.rounds, "Rounds; the table shows their median")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("--json", flags.json, "Also write the results as JSON")->type_name("FILE");
}
void AddCommon(CLI::App& command, CommonFlags& flags) {
  AddRounds(command, flags);
  command.add_option("--seconds", flags.rounds.seconds, "Length of a round in seconds")
      ->check(NumberIn(0.001, 600))
      ->capture_default_str();
}

// Returns INVALID_ARGUMENT if `bytes` exceed the machine's memory, because the machine would swap
// or kill processes.
absl::Status CheckFits(const std::string& what, double bytes) {
  const uint64_t memory = MachineMemoryBytes();
  if (bytes <= static_cast<double>(memory)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " takes about ", Fixed(1e-9 * bytes, 0),
                                                 " GB of memory; this machine has only ",
                                                 Bytes(memory)));
}

Json HostJson() {
  double load[3] = {0, 0, 0};
  getloadavg(load, 3);
  return {{"processors", MachineProcessors()}, {"load_1_minute", load[0]}};
}

// Returns the part of the JSON document that comes before the results. Call this function before
// the first measurement, because measurements change the machine's load.
Json Document(const std::string& bench, const CommonFlags& flags) {
  Json document = {{"bench", bench}, {"host", HostJson()}, {"rounds", flags.rounds.rounds}};
  if (flags.timed) document["seconds"] = flags.rounds.seconds;
  return document;
}

// Prints the results and, with --json, writes them. After an error it also keeps the earlier
// results, because they took minutes. Returns the error of measuring, or else of writing.
absl::Status Show(const CommonFlags& flags, const std::string& table, Json document, Json results,
                  const absl::Status& measured) {
  std::cout << table << std::flush;
  document["results"] = std::move(results);
  return WriteJson(flags.json, std::move(document), measured);
}

struct TransportFlags {
  CommonFlags common;
  std::vector<std::string> wires = {"tcp", "unix", "shm", "auto"};
  std::vector<std::string> methods = {"push", "pull", "push_pull"};
  std::vector<std::string> sizes = {"4K", "64K", "1M", "4M", "16M"};
  std::vector<std::string> codecs = {"none"};
  bool transfers_only = false;
  bool exchanges_only = false;
  bool tls = false;
  bool quick = false;
};

// Reduces the flags for --quick, so that the benchmark takes seconds, for a first look.
void MakeQuick(TransportFlags& flags) {
  flags.common.rounds = {.rounds = 1, .seconds = 0.05};
  flags.wires = {"tcp", "auto"};
  flags.methods = {"push_pull"};
  flags.sizes = {"64K", "4M"};
}

absl::Status RunTransport(TransportFlags flags) {
  if (flags.quick) MakeQuick(flags);
  RETURN_IF_ERROR(CheckWritable(flags.common.json));
  Json document = Document("transport", flags.common);
  TransportBenchOptions options;
  if (flags.tls) flags.wires = {"tcp"};
  ASSIGN_OR_RETURN(options.wires, ParseEach(flags.wires, ParseWire));
  ASSIGN_OR_RETURN(options.methods, ParseEach(flags.methods, ParseMethod));
  ASSIGN_OR_RETURN(options.sizes, ParseEach(flags.sizes, ParseBlockBytes));
  options.codecs = flags.codecs;
  options.transfers = !flags.exchanges_only;
  options.exchanges = !flags.transfers_only && !flags.tls;
  options.tls = flags.tls;
  options.rounds = flags.common.rounds;
  options.progress = ShowProgress;
  // Prints each row at once, because the complete table takes minutes, and the progress appears
  // only on a terminal.
  options.measured = [](const std::string& row) {
    ShowProgress("");
    std::cout << row << std::endl;
  };
  TransportBenchResult result;
  const absl::Status measured = BenchTransport(options, result);
  ShowProgress("");
  if (result.transfers.empty() && result.exchanges.empty()) return measured;
  return Show(flags.common, TransportTable(result), std::move(document), TransportJson(result),
              measured);
}

void AddTransport(CLI::App& bench, int& exit_code) {
  auto flags = std::make_shared<TransportFlags>();
  CLI::App* command = bench.add_subcommand(
      "transport", "Push, pull and both at once between one worker and one server process");
  command->add_option("--transports", flags->wires, "Any of tcp, unix, shm, auto")->delimiter(',');
  command->add_option("--methods", flags->methods, "Any of push, pull, push_pull")->delimiter(',');
  command
      ->add_option("--sizes", flags->sizes,
                   "Block sizes in bytes, such as 4K,1M; multiples of 64, at most 64M")
      ->delimiter(',');
  command->add_option("--codecs,--codec", flags->codecs, "Codecs of transfers, named as in a job")
      ->delimiter(',')
      ->check(CLI::IsMember(kCodecs));
  command->add_flag("--transfers-only", flags->transfers_only, "Leave out the small exchanges");
  command->add_flag("--exchanges-only", flags->exchanges_only, "Measure only the small exchanges")
      ->excludes("--transfers-only")
      ->excludes("--methods")
      ->excludes("--sizes")
      ->excludes("--codecs");
  command
      ->add_flag("--tls", flags->tls,
                 "Compare mutual TLS with plain TCP, instead of each transport with its limit")
      ->excludes("--transports")
      ->excludes("--exchanges-only");
  command
      ->add_flag("--quick", flags->quick,
                 "Take a first look within seconds: few rows, one short round of each")
      ->excludes("--transports")
      ->excludes("--methods")
      ->excludes("--sizes");
  AddCommon(*command, flags->common);
  command->callback([flags, &exit_code] { exit_code = ShowResult(RunTransport(*flags)); });
}

// The number of copies of the model's vector that each worker has, and that the servers have
// together.
constexpr double kExchangeCopies = 5;

struct ExchangeFlags {
  CommonFlags common = {.rounds = {.rounds = 5, .seconds = 1}, .timed = true, .json = ""};
  ExchangeBenchOptions options;
  std::vector<std::string> parameters = {"1M", "25M", "100M"};
  std::vector<std::string> wires = {"tcp", "auto"};
  std::string block = "0";
  bool no_raw = false;
};

absl::Status RunExchange(const ExchangeFlags& flags) {
  RETURN_IF_ERROR(CheckWritable(flags.common.json));
  Json document = Document("exchange", flags.common);
  ExchangeBenchOptions options = flags.options;
  ASSIGN_OR_RETURN(options.parameters, ParseEach(flags.parameters, ParseCount));
  ASSIGN_OR_RETURN(options.wires, ParseEach(flags.wires, ParseWire));
  for (const uint64_t parameters : options.parameters) {
    // The copies are two vectors of each worker, some vectors in shared memory, and the vectors of
    // the servers and of the raw limit.
    const double copies = kExchangeCopies * (options.workers + 1);
    RETURN_IF_ERROR(CheckFits(absl::StrCat("an exchange of ", parameters, " parameters"),
                              copies * sizeof(float) * static_cast<double>(parameters)));
  }
  if (flags.block != "0") {
    ASSIGN_OR_RETURN(options.block_bytes, ParseBlockBytes(flags.block));
  }
  options.rounds = flags.common.rounds.rounds;
  options.seconds = flags.common.rounds.seconds;
  options.raw = !flags.no_raw;
  options.program_folder = ProgramFolder();
  options.progress = ShowProgress;
  std::vector<ExchangeResult> results;
  const absl::Status measured = BenchExchange(options, results);
  ShowProgress("");
  if (results.empty()) return measured;
  return Show(flags.common, ExchangeTable(options, results), std::move(document),
              {{"servers", options.servers},
               {"workers", options.workers},
               {"update", options.update},
               {"codec", options.codec},
               {"rows", ExchangeJson(results)}},
              measured);
}

void AddExchange(CLI::App& bench, int& exit_code) {
  auto flags = std::make_shared<ExchangeFlags>();
  CLI::App* command = bench.add_subcommand(
      "exchange", "Sync exchanges of whole models between real servers and workers");
  ExchangeBenchOptions& options = flags->options;
  command->add_option("--servers", options.servers, "Server processes")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--workers", options.workers, "Worker processes")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--parameters", flags->parameters, "Parameters of the models, such as 1M,25M")
      ->delimiter(',');
  command->add_option("--transports", flags->wires, "Any of tcp, unix, shm, auto")->delimiter(',');
  command->add_option("--update", options.update, "The servers' update rule")
      ->check(CLI::IsMember({"sgd", "momentum", "adam"}))
      ->capture_default_str();
  command->add_option("--codec", options.codec, "The codec, named as in a job's compression")
      ->check(CLI::IsMember(kCodecs))
      ->capture_default_str();
  command->add_option("--block", flags->block, "Block size, such as 1M; 0 means the job's default");
  command->add_flag("--no-raw", flags->no_raw, "Do not measure the raw limit");
  AddCommon(*command, flags->common);
  command->callback([flags, &exit_code] { exit_code = ShowResult(RunExchange(*flags)); });
}

// The smallest shard (UpdateBenchOptions::shard_bytes), and the memory that the benchmark needs in
// multiples of the shard's size (BenchUpdates).
constexpr uint64_t kShardBytesMin = 1024;
constexpr double kShardCopies = 10;

struct UpdateFlags {
  CommonFlags common = {.rounds = {}, .timed = false, .json = ""};
  UpdateBenchOptions options;
  std::string shard = "100M";
  std::string block = "1M";
  bool all = false;
};

absl::Status RunUpdate(const UpdateFlags& flags) {
  RETURN_IF_ERROR(CheckWritable(flags.common.json));
  Json document = Document("update", flags.common);
  UpdateBenchOptions options = flags.options;
  ASSIGN_OR_RETURN(options.shard_bytes, ParseCount(flags.shard));
  if (options.shard_bytes < kShardBytesMin) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shard ", flags.shard, ": a shard has at least ", kShardBytesMin, " bytes"));
  }
  RETURN_IF_ERROR(CheckFits(absl::StrCat("a shard of ", flags.shard, " bytes"),
                            kShardCopies * static_cast<double>(options.shard_bytes)));
  ASSIGN_OR_RETURN(options.block_bytes, ParseBlockBytes(flags.block));
  options.rounds = flags.common.rounds.rounds;
  if (!flags.all) {
    options.pieces = {true};
    options.keep_previous = {true};
  }
  const std::vector<UpdateResult> results = BenchUpdates(options);
  return Show(flags.common, UpdateTable(results), std::move(document), UpdateJson(results),
              absl::OkStatus());
}

void AddUpdate(CLI::App& bench, int& exit_code) {
  auto flags = std::make_shared<UpdateFlags>();
  CLI::App* command = bench.add_subcommand(
      "update", "Measure the arithmetic of each update rule on a server, without a network");
  UpdateBenchOptions& options = flags->options;
  command->add_option("--rules", options.rules, "Update rules")
      ->delimiter(',')
      ->check(CLI::IsMember(UpdateBenchRules()));
  command->add_option("--contributions", options.contributions, "Contributions to one update")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  command->add_option("--threads", options.threads, "Threads, each with one block at a time")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  command->add_option("--shard", flags->shard, "Bytes of the shard's parameters; M means 1e6 here")
      ->capture_default_str();
  command->add_option("--block", flags->block, "Bytes of a block")->capture_default_str();
  command->add_flag("--all", flags->all,
                    "Also measure contiguous payloads, as in shared memory, and updates in place");
  AddRounds(*command, flags->common);
  command->callback([flags, &exit_code] { exit_code = ShowResult(RunUpdate(*flags)); });
}

}  // namespace

void AddBenchCommand(CLI::App& app, int& exit_code) {
  CLI::App* bench = app.add_subcommand(
      "bench", "Measure the data path beside the raw limits of this machine, in one run");
  bench->require_subcommand(1);
  AddTransport(*bench, exit_code);
  AddExchange(*bench, exit_code);
  AddUpdate(*bench, exit_code);
}

}  // namespace leeway
