// leeway doctor: measures this machine and network, and says what that means for a job.
#include "launcher/doctor/doctor.h"

#include <iostream>
#include <memory>
#include <optional>

#include "common/command_line/command_line.h"
#include "common/files/files.h"
#include "common/process/process.h"
#include "common/status.h"
#include "config/external.h"
#include "config/topology.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/doctor/peer.h"
#include "launcher/plan/data_files.h"

namespace leeway {
namespace {

struct DoctorFlags {
  JobFlags job;
  std::string peer;
  std::string listen;
  double seconds = 0.5;
  std::string json;
};

absl::Status Listen(const DoctorFlags& flags) {
  const absl::Status served = ServePeers(flags.listen, 0, [](int port) {
    std::cout << "listening on port " << port
              << "; on the other machine: leeway doctor --peer HOST:" << port
              << "\nCtrl-C ends it\n"
              << std::flush;
  });
  return Annotate(served, "--listen");
}

// Returns what the measured exchange leaves out of the job's own, or an empty string.
const char* NoteOn(const v1::TrainingJob& job) {
  if (!WorkersFetch(job)) return "";
  return IsGossip(job)
             ? "leeway: the exchange is measured with servers: that is a clock in which the mean "
               "is exchanged, without what workers fetch from each other\n"
             : "leeway: the exchange is measured as with topology.algorithm: direct, which sends "
               "as many bytes in fewer steps\n";
}

absl::Status Examine(const DoctorFlags& flags) {
  RETURN_IF_ERROR(CheckWritable(flags.json));
  DoctorOptions options;
  options.seconds = flags.seconds;
  options.peer = flags.peer;
  options.program_folder = ProgramFolder();
  options.progress = ShowProgress;
  if (!flags.job.job_file.empty()) {
    ASSIGN_OR_RETURN(PlacedJob placed, LoadJobWithOptions(flags.job));
    RETURN_IF_ERROR(placed.places.Place(CheckHasLayers(placed.job, "this command")));
    std::cerr << NoteOn(placed.job);
    // Measure with separate servers: their exchanges are the same as those of workers that hold the
    // blocks.
    options.job = WithServers(placed.job);
    ASSIGN_OR_RETURN(options.data_dir,
                     FindDataFolder(flags.job.data, flags.job.job_file, *options.job));
    RETURN_IF_ERROR(CheckDataFiles(*options.job, options.data_dir));
  }
  std::optional<Diagnosis> diagnosis;
  const absl::Status found = Diagnose(options, diagnosis);
  ShowProgress("");
  if (!diagnosis.has_value()) return found;
  std::cout << DiagnosisText(*diagnosis) << std::flush;
  return WriteJson(flags.json, DiagnosisJson(*diagnosis), found);
}

}  // namespace

void AddDoctorCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command = app.add_subcommand("doctor",
                                         "Measure this machine, and estimate how many servers and "
                                         "which block size a job needs, and how long a step takes");
  command->add_option("JOB", flags->job.job_file, "The job file; if absent, only the machine");
  AddSetOption(*command, flags->job);
  AddDataOption(*command, flags->job.data);
  command
      ->add_option("--peer", flags->peer,
                   "The machine for the servers, on which `leeway doctor --listen` runs")
      ->check(AddressToReach());
  command->add_option("--seconds", flags->seconds, "Seconds of each measurement")
      ->check(NumberIn(0.01, 60))
      ->capture_default_str();
  command->add_option("--json", flags->json, "Also write the findings as JSON")->type_name("FILE");
  // A doctor that listens does not measure, so --listen excludes the options for measuring.
  command->add_option("--listen", flags->listen, "Serve a doctor on another machine as its peer")
      ->check(AddressToBind())
      ->excludes("JOB")
      ->excludes("--set")
      ->excludes("--data")
      ->excludes("--peer")
      ->excludes("--seconds")
      ->excludes("--json");
  command->callback([flags, &exit_code] {
    exit_code = ShowResult(flags->listen.empty() ? Examine(*flags) : Listen(*flags));
  });
}

}  // namespace leeway
