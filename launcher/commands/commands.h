// The commands of `leeway`. Each command has its own file, with a function that adds the command to
// the command line. The chosen command runs and sets the exit code (ShowResult): 0 if it succeeded,
// 2 if the arguments or the job file are wrong.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace leeway {

// `command` is the part of the command line after "--" (worker_command.h).
void AddTrainCommand(CLI::App& app, int& exit_code, std::vector<std::string> command);
void AddPlanCommand(CLI::App& app, int& exit_code);
// `command` is the same as for AddTrainCommand.
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

// Runs `leeway` with these arguments and returns the exit code. This is all that main does.
int RunLeeway(int argc, const char* const* argv);

}  // namespace leeway
