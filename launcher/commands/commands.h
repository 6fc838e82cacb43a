// The commands of `leeway`, one file each. Every one adds itself to the command line; when it is
// chosen it runs and sets the exit code: 0 done, 1 failed, 2 wrong arguments or job file.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace leeway {

// `command`: what the command line has behind "--" (worker_command.h).
void AddTrainCommand(CLI::App& app, int& exit_code, std::vector<std::string> command);
void AddPlanCommand(CLI::App& app, int& exit_code);
// As AddTrainCommand.
void AddKubernetesCommand(CLI::App& app, int& exit_code, std::vector<std::string> command);
void AddDataCommand(CLI::App& app, int& exit_code);
void AddInitCommand(CLI::App& app, int& exit_code);
void AddEvaluateCommand(CLI::App& app, int& exit_code);
void AddExportCommand(CLI::App& app, int& exit_code);
void AddStatusCommand(CLI::App& app, int& exit_code);
void AddResizeCommand(CLI::App& app, int& exit_code);
void AddStopCommand(CLI::App& app, int& exit_code);
void AddHealthCommand(CLI::App& app, int& exit_code);
void AddReportCommand(CLI::App& app, int& exit_code);
void AddBenchCommand(CLI::App& app, int& exit_code);
void AddCertificatesCommand(CLI::App& app, int& exit_code);
void AddDoctorCommand(CLI::App& app, int& exit_code);
void AddRemoteCommand(CLI::App& app, int& exit_code);

// Runs `leeway` with these arguments: what main does.
int RunLeeway(int argc, const char* const* argv);

}  // namespace leeway
