#include "tests/common/storage/test_store.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/skip.h"

namespace leeway {
namespace {

std::string ReadLine(int descriptor) {
  std::string line;
  char c = 0;
  while (read(descriptor, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

}  // namespace

const TestStore& TestStore::Get() {
  static const TestStore store;
  if (!store.missing_.empty()) SKIP(store.missing_);
  return store;
}

TestStore::TestStore() {
  std::string name = (std::filesystem::temp_directory_path() / "leeway-store-XXXXXX").string();
  folder_ = mkdtemp(name.data()) != nullptr ? name : "";
  int input[2], output[2];
  if (folder_.empty() || pipe(input) != 0 || pipe(output) != 0) {
    missing_ = "no folder or pipe for the store";
    return;
  }
  const std::string program = std::string(LEEWAY_SOURCE_DIR) + "/tests/store/store.py";
  const std::string bin = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  process_ = fork();
  if (process_ == 0) {
    dup2(input[0], STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    for (const int each : {input[0], input[1], output[0], output[1]}) close(each);
    setenv("LEEWAY_BIN", bin.c_str(), 1);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    execl("/usr/bin/python3", "python3", program.c_str(), folder_.c_str(), nullptr);
    _exit(127);
  }
  close(input[0]);
  close(output[1]);
  lifeline_ = input[1];
  endpoint_ = ReadLine(output[0]);
  close(output[0]);
  if (endpoint_.rfind("http://", 0) != 0) missing_ = "the store does not start: " + endpoint_;
  setenv("AWS_ENDPOINT_URL", endpoint_.c_str(), 1);
  setenv("AWS_ACCESS_KEY_ID", "S3RVER", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "S3RVER", 1);
  setenv("LEEWAY_S3_PART_BYTES", "65536", 1);
}

TestStore::~TestStore() {
  if (lifeline_ >= 0) close(lifeline_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::string TestStore::Folder(const std::string& name) const {
  static int next = 0;
  return absl::StrCat("s3://bucket/", name, "-", next++);
}

}  // namespace leeway
