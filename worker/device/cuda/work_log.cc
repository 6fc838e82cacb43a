#include "worker/device/cuda/work_log.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace leeway::cuda {
namespace {

// The largest number of names in an error.
constexpr size_t kNamed = 6;

}  // namespace

void WorkLog::Queued(Stream stream, const char* what) {
  Line& line = Of(stream);
  ++line.queued;
  line.names.push_back(what);
  if (line.names.size() > kMax) line.names.pop_front();
}

void WorkLog::Done(Stream stream, uint64_t mark) {
  Line& line = Of(stream);
  // `names` holds the names of the work that was queued last. Names of finished work are dropped.
  while (!line.names.empty() && line.queued - line.names.size() < mark) line.names.pop_front();
}

std::string WorkLog::Suspects() const {
  std::vector<absl::string_view> names;
  for (const Line& line : lines_) {
    for (const char* name : line.names) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  if (names.empty()) return "nothing that was queued";
  if (names.size() == 1) return std::string(names[0]);
  const size_t shown = std::min(names.size(), kNamed);
  const std::string some = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
  if (shown == names.size()) return absl::StrCat("one of ", some);
  return absl::StrCat("one of ", some, " and ", names.size() - shown, " more");
}

}  // namespace leeway::cuda
