#include "common/rpc/library_log.h"

#include <string>
#include <vector>

#include <grpcpp/version_info.h>
#include <spdlog/spdlog.h>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/mutex.h"

// From version 1.67 on the library writes to Abseil's log.
#if GRPC_CPP_VERSION_MAJOR > 1 || GRPC_CPP_VERSION_MINOR >= 67
#define LEEWAY_ABSL_LOG 1
#include "absl/base/log_severity.h"
#include "absl/log/globals.h"
#include "absl/log/initialize.h"
#include "absl/log/log_entry.h"
#include "absl/log/log_sink.h"
#include "absl/log/log_sink_registry.h"
#else
#include <grpc/support/log.h>
#endif

namespace leeway {
namespace {

constexpr size_t kTextsMax = 500;
#ifdef LEEWAY_ABSL_LOG
constexpr absl::string_view kHandshake = "Handshake failed";
#else
constexpr absl::string_view kHandshake = "Handshaking failed";
#endif
// Messages of the library about normal events: certificates are read again, and a server ends.
constexpr absl::string_view kReading = "Tls";
constexpr absl::string_view kEnding = "Listener stopped serving";
// A message about a name that is not in the server's certificate. This is normal, because a server
// has one certificate for all names, and Leeway checks roles and not names.
constexpr absl::string_view kNoSuchName = "No match found for server name";

struct Said {
  Mutex mutex;
  absl::flat_hash_set<std::string> texts GUARDED_BY(mutex);
};

// Returns the causes in an error message of the library, outermost first. For example, UNKNOWN:a
// {..., children:[UNKNOWN:b {...}]} becomes "a: b". The result has no source positions and times,
// because these differ each time.
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

void Log(absl::string_view message, bool is_error) {
  if (!is_error && !absl::StartsWith(message, kHandshake)) return;
  const std::string text = Causes(message);
  if (absl::StartsWith(text, kReading) || absl::StrContains(text, kEnding) ||
      absl::StartsWith(text, kNoSuchName)) {
    return;
  }
  if (IsNew(text)) spdlog::warn("grpc: {}", text);
}

#ifdef LEEWAY_ABSL_LOG
class Sink : public absl::LogSink {
 public:
  void Send(const absl::LogEntry& entry) override {
    Log(entry.text_message(), entry.log_severity() >= absl::LogSeverity::kError);
  }
};
#else
void TakeEntry(gpr_log_func_args* entry) {
  Log(entry->message, entry->severity == GPR_LOG_SEVERITY_ERROR);
}
#endif

}  // namespace

void TakeLibraryLog(bool handshakes) {
#ifdef LEEWAY_ABSL_LOG
  absl::AddLogSink(new Sink());
  if (handshakes) absl::SetMinLogLevel(absl::LogSeverityAtLeast::kInfo);
  // Write only fatal messages to stderr. Without InitializeLog all messages would go there.
  absl::SetStderrThreshold(absl::LogSeverityAtLeast::kFatal);
  absl::InitializeLog();
#else
  gpr_set_log_function(TakeEntry);
  if (handshakes) gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
#endif
}

void KeepLibraryLogToErrors() {
#ifdef LEEWAY_ABSL_LOG
  absl::SetMinLogLevel(absl::LogSeverityAtLeast::kError);
#endif
}

}  // namespace leeway
