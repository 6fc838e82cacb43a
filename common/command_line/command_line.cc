#include "common/command_line/command_line.h"

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/address.h"
#include "common/exit_code.h"
#include "common/printable.h"
#include "common/suggestion.h"

namespace leeway {
namespace {

CLI::Validator Checked(absl::Status (*check)(const std::string&)) {
  return CLI::Validator([check](std::string& text) { return std::string(check(text).message()); },
                        "HOST:PORT");
}

// Returns the command that the arguments chose: `app` itself, or a command below it.
const CLI::App& ChosenCommand(const CLI::App& app) {
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
  return *chosen;
}

std::vector<std::string> CommandsOf(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::string UnknownOption(const CLI::App& command, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& each : option->get_lnames()) known.push_back("--" + each);
  }
  // Suggest nothing for an option of one letter, because all letters are similar.
  const bool is_word = absl::StartsWith(name, "--");
  return absl::StrCat("unknown option '", name, "'", is_word ? Suggestion(name, known) : "");
}

// Returns the error for `arguments`, which no option and no command accepts. The error names only
// the first of them, because an argument after an unknown option may be its value, and an argument
// after an unknown command may belong to that command.
std::string ExplainUnknown(const CLI::App& command, const std::vector<std::string>& arguments) {
  const std::string& first = arguments.front();
  const std::vector<std::string> commands = CommandsOf(command);
  if (!commands.empty() && !absl::StartsWith(first, "-")) {
    return absl::StrCat("unknown command '", first, "'", Suggestion(first, commands));
  }
  for (const std::string& argument : arguments) {
    if (absl::StartsWith(argument, "-")) return UnknownOption(command, argument);
  }
  return absl::StrCat("unexpected argument '", first, "'");
}

std::string Explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = ChosenCommand(app);
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const bool wanting = code == CLI::ExitCodes::RequiredError;
  if (code == CLI::ExitCodes::ExtrasError || wanting) {
    const std::vector<std::string> unknown = app.remaining(true);
    if (!unknown.empty()) return ExplainUnknown(command, unknown);
  }
  if (code == CLI::ExitCodes::ConversionError) {
    return absl::StrReplaceAll(error.what(),
                               {{"Could not convert", "the value has the wrong kind"}});
  }
  const std::vector<std::string> commands = CommandsOf(command);
  if (!wanting || commands.empty()) return error.what();
  return absl::StrCat("a command is missing; use one of ", absl::StrJoin(commands, ", "));
}

constexpr char kEmpty[] = "the value is empty: give a value, or leave the option out";

// Makes every option refuse an empty value, before the option's own checks.
void RefuseEmptyValues(CLI::App& app) {
  const auto check = [](const std::string& text) {
    return std::string(text.empty() ? kEmpty : "");
  };
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() > 0) option->transform(CLI::Validator(check, ""));
  }
  for (CLI::App* command : app.get_subcommands({})) RefuseEmptyValues(*command);
}

// Returns the error for an argument such as --name=, or "" if there is none. CLI11 would take the
// next argument as the value.
std::string EmptyAssignment(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    if (argument == "--") break;
    const bool empty =
        absl::StartsWith(argument, "--") && argument.find('=') + 1 == argument.size();
    if (empty) return absl::StrCat(argument.substr(0, argument.size() - 1), ": ", kEmpty);
  }
  return "";
}

// Returns a name such as "leeway bench transport".
std::string FullName(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name()
                           : absl::StrCat(FullName(*parent), " ", command.get_name());
}

}  // namespace

CLI::Validator AddressToReach() { return Checked(CheckAddressToReach); }

CLI::Validator AddressToBind() {
  return Checked([](const std::string& text) { return SplitAddress(text).status(); });
}

std::optional<int> ParseCommandLine(CLI::App& app, int argc, const char* const* argv) {
  RefuseEmptyValues(app);
  try {
    const std::string empty = EmptyAssignment(argc, argv);
    if (!empty.empty()) throw CLI::ValidationError(empty);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 also throws for --help and --version, with exit code 0.
    if (error.get_exit_code() == 0) {
      app.exit(error);
      return kExitDone;
    }
    std::cerr << app.get_name() << ": " << Printable(Explain(app, error)) << "\n"
              << "Run '" << FullName(ChosenCommand(app)) << " --help' for its options.\n";
    return kExitUsage;
  }
  return std::nullopt;
}

}  // namespace leeway
