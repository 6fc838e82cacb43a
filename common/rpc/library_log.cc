#include "common/rpc/library_log.h"

#include <string>
#include <vector>

#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/mutex.h"

namespace leeway {
namespace {

constexpr size_t kTextsMax = 500;
constexpr absl::string_view kHandshake = "Handshaking failed";
// What the library says of itself: when it reads certificates once more, and when a server ends.
constexpr absl::string_view kReading = "Tls";
constexpr absl::string_view kEnding = "Listener stopped serving";

struct Said {
  Mutex mutex;
  absl::flat_hash_set<std::string> texts GUARDED_BY(mutex);
};

// The causes of an error as the library writes it, outermost first, without its places and times,
// which differ each time: UNKNOWN:a {..., children:[UNKNOWN:b {...}]} is "a: b".
std::string Causes(absl::string_view error) {
  std::vector<absl::string_view> causes;
  for (absl::string_view part : absl::StrSplit(error, "UNKNOWN:")) {
    part = part.substr(0, part.find(" {"));
    while (absl::EndsWith(part, " ") || absl::EndsWith(part, ":")) part.remove_suffix(1);
    if (!part.empty()) causes.push_back(part);
  }
  return absl::StrJoin(causes, ": ");
}

bool IsNew(const std::string& text) {
  static Said* said = new Said();
  MutexLock lock(said->mutex);
  return said->texts.size() < kTextsMax && said->texts.insert(text).second;
}

void Log(gpr_log_func_args* entry) {
  const absl::string_view message(entry->message);
  const bool handshake = absl::StartsWith(message, kHandshake);
  if (entry->severity != GPR_LOG_SEVERITY_ERROR && !handshake) return;
  const std::string text = Causes(message);
  if (absl::StartsWith(text, kReading) || absl::StrContains(text, kEnding)) return;
  if (IsNew(text)) spdlog::warn("grpc: {}", text);
}

}  // namespace

void TakeLibraryLog(bool handshakes) {
  gpr_set_log_function(Log);
  if (handshakes) gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
}

}  // namespace leeway
