#include "launcher/supervision/find_program.h"

#include <filesystem>
#include <utility>

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace leeway {
namespace {

bool IsProgram(const std::string& path) {
  std::error_code error;
  return access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, error);
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name, const EnvironmentLookup& look_up) {
  if (name.find('/') != std::string::npos) {
    if (IsProgram(name)) return name;
    return absl::NotFoundError(
        absl::StrCat(name, ": there is no such program, or it cannot be executed"));
  }
  const std::string path = look_up("PATH").value_or("");
  for (const absl::string_view folder : absl::StrSplit(path, ':')) {
    std::string candidate = absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (!name.empty() && IsProgram(candidate)) return candidate;
  }
  return absl::NotFoundError(
      absl::StrCat(name, ": there is no such program in the PATH (", path, ")"));
}

absl::StatusOr<std::vector<std::string>> FindCommand(std::vector<std::string> command) {
  absl::StatusOr<std::string> program = FindProgram(command[0]);
  if (!program.ok()) {
    return absl::NotFoundError(absl::StrCat("-- ", program.status().message()));
  }
  command[0] = *std::move(program);
  return command;
}

}  // namespace leeway
