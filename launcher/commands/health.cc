// leeway health: asks the health port of a server or a worker for its health.
#include <iostream>
#include <memory>

#include "common/command_line/command_line.h"
#include "common/rpc/health_port.h"
#include "common/status.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"

namespace leeway {
namespace {

struct HealthOptions {
  std::string address;
  std::string service;
  // The time limit. It leaves room for one lost DNS query, which is repeated after five seconds.
  double seconds = 10;
};

absl::Status ShowHealth(const HealthOptions& options) {
  RETURN_IF_ERROR(CheckHealth(options.address, options.service, FromSeconds(options.seconds)));
  std::cout << "serving\n";
  return absl::OkStatus();
}

}  // namespace

void AddHealthCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<HealthOptions>();
  CLI::App* command = app.add_subcommand(
      "health", "Ask the health port of a server or a worker; exits with 0 if it is serving");
  command->add_option("ADDRESS", options->address, "HOST:PORT of the health port")
      ->required()
      ->check(AddressToReach());
  command->add_option("--service", options->service,
                      "The service to ask about. leeway.v1.ParameterServer is serving once the "
                      "server holds its part of the model. Default: the process as a whole");
  command->add_option("--timeout", options->seconds, "How many seconds to wait")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->callback([options, &exit_code] { exit_code = ShowResult(ShowHealth(*options)); });
}

}  // namespace leeway
