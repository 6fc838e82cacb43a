// Runs every file of a folder through a fuzz target: what the fuzzers have found is a plain test in
// every build, without libFuzzer.
//   fuzz_corpus TARGET FOLDER
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tests/fuzz/fuzz_input.h"

namespace leeway::replay {
namespace {

std::vector<std::filesystem::path> FilesIn(const char* folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Returns the target; null if there is no such target.
const FuzzTarget* Find(std::string_view name) {
  const FuzzTarget* target = FuzzTarget::first;
  while (target != nullptr && target->name != name) target = target->next;
  return target;
}

int Run(const FuzzTarget& target, const char* folder) {
  const std::vector<std::filesystem::path> files = FilesIn(folder);
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    // If the process ends, the last name printed is that of the file that ended it.
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);
    FuzzInput input(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    target.run(input);
  }
  std::printf("%zu inputs\n", files.size());
  return files.empty() ? 1 : 0;
}

}  // namespace
}  // namespace leeway::replay

int main(int argc, char** argv) {
  const leeway::FuzzTarget* const target = argc == 3 ? leeway::replay::Find(argv[1]) : nullptr;
  if (target == nullptr) {
    std::fprintf(stderr, "usage: fuzz_corpus TARGET FOLDER\n");
    return 2;
  }
  return leeway::replay::Run(*target, argv[2]);
}
