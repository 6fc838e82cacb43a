#include "common/rpc/host.h"

#include <fstream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"

namespace leeway {
namespace {

constexpr size_t kDigits = 16;

// Appends the device and inode of `path`, which identify a namespace. Returns false if `path` does
// not exist.
bool AppendNamespace(const char* path, std::string& text) {
  struct stat info;
  if (stat(path, &info) != 0) return false;
  absl::StrAppend(&text, " ", info.st_dev, ":", info.st_ino);
  return true;
}

// Returns a string that identifies the running kernel and the network namespace. It is empty if the
// system does not provide these facts.
std::string NetworkText() {
  std::string text;
  if (!std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text)) return "";
  return AppendNamespace("/proc/self/ns/net", text) ? text : "";
}

}  // namespace

std::string HostName() {
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

std::string NetworkIdentity() {
  const std::string text = NetworkText();
  return text.empty() ? "" : HexSha256(text).substr(0, kDigits);
}

std::string HostIdentity() {
  std::string text = NetworkText();
  if (text.empty() || !AppendNamespace("/proc/self/ns/pid", text)) return "";
  absl::StrAppend(&text, " ", geteuid());
  return HexSha256(text).substr(0, kDigits);
}

}  // namespace leeway
