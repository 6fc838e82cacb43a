#include "launcher/hosts/host_list.h"

#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/counted.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

// The most workers on one host.
constexpr uint32_t kWorkersMax = 10000;

absl::Status Wrong(absl::string_view entry, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("--hosts: '", entry, "': ", what, "; write NAME:WORKERS, such as a:2,b:2"));
}

// Returns the place of the colon before the number of workers, or npos if the entry has no number.
// Colons of an IPv6 address are in brackets.
size_t FindCount(absl::string_view entry) {
  const size_t colon = entry.rfind(':');
  if (colon == absl::string_view::npos) return colon;
  const size_t bracket = entry.rfind(']');
  const bool inside = bracket != absl::string_view::npos && colon < bracket;
  return inside ? absl::string_view::npos : colon;
}

std::string WithoutBrackets(absl::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    return std::string(text.substr(1, text.size() - 2));
  }
  return std::string(text);
}

absl::StatusOr<JobHost> ParseHost(absl::string_view entry) {
  JobHost host;
  absl::string_view rest = entry;
  if (const size_t colon = FindCount(entry); colon != absl::string_view::npos) {
    const absl::string_view count = entry.substr(colon + 1);
    if (!absl::SimpleAtoi(count, &host.workers) || host.workers > kWorkersMax) {
      return Wrong(entry, absl::StrCat("'", count, "' is not a number of workers"));
    }
    rest = entry.substr(0, colon);
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(rest, absl::MaxSplits('=', 1));
  host.name = WithoutBrackets(parts.first);
  host.address = WithoutBrackets(parts.second);
  if (host.name.empty()) return Wrong(entry, "the name is missing");
  // ssh would read a leading '-' as an option, and a shell would split at blanks and quotes.
  if (host.name[0] == '-' || host.name.find_first_of(" \t'\"") != std::string::npos) {
    return Wrong(entry, "the name is not a valid host name");
  }
  if (rest.find('=') != absl::string_view::npos && host.address.empty()) {
    return Wrong(entry, "the address after = is missing");
  }
  return host;
}

}  // namespace

absl::StatusOr<std::vector<JobHost>> ParseHosts(const std::string& text, uint32_t workers) {
  RETURN_IF_ERROR(CheckPrintable("--hosts", text, kTextBytesMax));
  std::vector<JobHost> hosts;
  std::set<std::string> names;
  uint64_t sum = 0;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    ASSIGN_OR_RETURN(JobHost host, ParseHost(entry));
    if (!names.insert(host.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--hosts: ", host.name,
                       " is listed twice; list it once, with the number of all its workers"));
    }
    sum += host.workers;
    hosts.push_back(std::move(host));
  }
  if (sum == workers) return hosts;
  return absl::InvalidArgumentError(
      absl::StrCat("--hosts: these hosts have ", Counted(sum, "worker"), ", but the job has ",
                   workers, "; change the numbers, or the job (--set workers.count=", sum, ")"));
}

size_t HostOfServer(const std::vector<JobHost>& hosts, uint32_t index) {
  return index % hosts.size();
}

size_t HostOfWorker(const std::vector<JobHost>& hosts, uint32_t rank) {
  size_t host = 0;
  while (host + 1 < hosts.size() && rank >= hosts[host].workers) rank -= hosts[host++].workers;
  return host;
}

std::string ProcessesOf(const std::vector<JobHost>& hosts, size_t host, uint32_t servers) {
  std::vector<std::string> names;
  for (uint32_t index = 0; index < servers; ++index) {
    if (HostOfServer(hosts, index) == host) names.push_back(absl::StrCat("server ", index));
  }
  uint32_t rank = 0;
  for (size_t before = 0; before < host; ++before) rank += hosts[before].workers;
  for (uint32_t i = 0; i < hosts[host].workers; ++i) {
    names.push_back(absl::StrCat("worker ", rank + i));
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace leeway
