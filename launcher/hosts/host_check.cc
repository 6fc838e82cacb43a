#include "launcher/hosts/host_check.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/exit_code.h"
#include "common/files/files.h"
#include "common/files/temporary_folder.h"
#include "common/printable.h"
#include "common/protocol.h"
#include "common/status.h"

namespace leeway {
namespace {

// The time limit for the answers. ssh, as Leeway runs it by default, gives up earlier.
constexpr Duration kAnswerWithin = std::chrono::seconds(40);
constexpr size_t kSaidLines = 3;
constexpr uint64_t kSaidBytesMax = 64 << 10;
// The exit codes of a shell for a program that it does not find, or that it cannot start.
constexpr int kNotFound = 127;
constexpr int kNotStarted = 126;

struct Asked {
  JobHost* host = nullptr;
  // The file to which ssh and the remote shell write their errors.
  std::string said_file;
  std::unique_ptr<SshSession> session;
  std::optional<RemoteHello> hello;
  // The exit status of ssh; absent while ssh runs.
  std::optional<ExitStatus> exit;
};

absl::StatusOr<Asked> AskHost(const SshCommand& ssh, JobHost& host, const std::string& said_file) {
  Asked asked;
  asked.host = &host;
  asked.said_file = said_file;
  const RemoteRequest nothing{.version = kVersion};
  ASSIGN_OR_RETURN(asked.session, SshSession::Open(ssh, host.name, absl::StrCat("ssh ", host.name),
                                                   said_file, RequestLine(nothing)));
  return asked;
}

// Waits until all connections have ended, or until the time `until`.
absl::Status Await(std::vector<Asked>& all, Time until) {
  while (true) {
    std::vector<pollfd> fds;
    for (const Asked& each : all) {
      if (!each.exit.has_value()) fds.push_back({each.session->fd(), POLLIN, 0});
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (fds.empty() || left.count() <= 0) return absl::OkStatus();
    if (poll(fds.data(), fds.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) {
      return absl::InternalError("waiting for ssh: poll");
    }
    for (Asked& each : all) {
      if (each.exit.has_value()) continue;
      ASSIGN_OR_RETURN(SshSession::Taken taken, each.session->Take());
      for (RemoteNews& news : taken.news) {
        if (news.hello.has_value()) each.hello = std::move(news.hello);
      }
      each.exit = std::move(taken.exit);
    }
  }
}

// Returns the last lines of the errors of ssh and the remote shell as one line.
std::string Said(const Asked& asked) {
  std::string text = ReadFile(asked.said_file, kSaidBytesMax).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  size_t begin = text.size();
  for (size_t line = 0; line < kSaidLines && begin != std::string::npos && begin > 0; ++line) {
    begin = text.rfind('\n', begin - 1);
  }
  if (begin != std::string::npos) text = text.substr(begin);
  const std::string said = Printable(text);
  return said.empty() ? "" : absl::StrCat(" (", said, ")");
}

std::string WhyNoHello(const Asked& asked, const SshCommand& ssh) {
  const std::string& name = asked.host->name;
  const std::string program =
      ssh.remote_bin.empty() ? "leeway on its PATH" : absl::StrCat(ssh.remote_bin, "/leeway");
  if (!asked.exit.has_value()) return absl::StrCat(name, " does not answer", Said(asked));
  const int code = asked.exit->signaled ? -1 : asked.exit->code;
  if (code == kNotFound || code == kNotStarted) {
    return absl::StrCat(
        name, " has no program ", program,
        ": install Leeway there, or name the folder of the program (--remote-bin DIR)",
        Said(asked));
  }
  if (code == kExitUsage) {
    return absl::StrCat(name, ": ", program,
                        " is of another version, without `leeway remote`: ", "install Leeway ",
                        kVersion, " there", Said(asked));
  }
  if (code == kExitDone) {
    return absl::StrCat(name,
                        " is reached, but 'leeway remote' does not answer there: does the login "
                        "shell (.bashrc, for example) end early, or run another program?",
                        Said(asked));
  }
  return absl::StrCat(name, " cannot be reached by '", absl::StrJoin(ssh.words, " "), " ", name,
                      "', which must work without a password: it ended with ",
                      asked.exit->ToString(), Said(asked));
}

// Returns the address from this machine's resolver, or an empty string if the resolver knows none.
std::string Resolved(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const size_t at = name.find('@');
  const std::string host = at == std::string::npos ? name : name.substr(at + 1);
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return "";
  char text[NI_MAXHOST] = "";
  getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  freeaddrinfo(found);
  return text;
}

// Returns what is wrong with the host, or an empty string.
std::string WhatIsWrong(const Asked& asked, const SshCommand& ssh) {
  const std::string& name = asked.host->name;
  if (!asked.hello.has_value()) return WhyNoHello(asked, ssh);
  if (asked.hello->version != kVersion) {
    return absl::StrCat(name, " has Leeway ", asked.hello->version, ", but this is Leeway ",
                        kVersion, ": install the same version on both");
  }
  if (!asked.hello->missing_programs.empty()) {
    return absl::StrCat(name, " lacks these programs: ",
                        Printable(absl::StrJoin(asked.hello->missing_programs, ", ")),
                        "; install them in the same folder as leeway");
  }
  if (asked.host->address.empty()) {
    return absl::StrCat("the address of ", name, " is not known: use --hosts ", name,
                        "=ADDRESS:", asked.host->workers);
  }
  return "";
}

absl::Status CheckAddresses(const std::vector<JobHost>& hosts) {
  for (const JobHost& host : hosts) {
    if (hosts.size() == 1 || ReachesBeyondLoopback(host)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--hosts: ", host.name, " has the address ", host.address,
        ", at which the other hosts cannot reach it: give its address in the network, ", host.name,
        "=ADDRESS:", host.workers));
  }
  return absl::OkStatus();
}

}  // namespace

bool ReachesBeyondLoopback(const JobHost& host) {
  return ReachOf({.host = host.address, .port = "0"}) == Reach::kAnybody;
}

absl::Status CheckHosts(const SshCommand& ssh, std::vector<JobHost>& hosts) {
  ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Make("leeway-hosts"));
  std::vector<Asked> all;
  for (JobHost& host : hosts) {
    const std::string said = absl::StrCat(folder->path(), "/", all.size());
    ASSIGN_OR_RETURN(Asked asked, AskHost(ssh, host, said));
    all.push_back(std::move(asked));
  }
  RETURN_IF_ERROR(Await(all, std::chrono::steady_clock::now() + kAnswerWithin));
  std::vector<std::string> wrong;
  for (const Asked& asked : all) {
    std::string& address = asked.host->address;
    if (address.empty() && asked.hello.has_value()) address = asked.hello->address;
    if (address.empty() && asked.hello.has_value()) address = Resolved(asked.host->name);
    std::string what = WhatIsWrong(asked, ssh);
    if (!what.empty()) wrong.push_back(std::move(what));
  }
  if (wrong.empty()) return CheckAddresses(hosts);
  return absl::FailedPreconditionError(absl::StrCat("--hosts: ", absl::StrJoin(wrong, "\n  ")));
}

}  // namespace leeway
