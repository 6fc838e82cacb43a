#include "launcher/hosts/ssh_hosts.h"

#include <filesystem>
#include <optional>
#include <utility>

#include <signal.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "common/exit_code.h"
#include "common/files/files.h"
#include "common/protocol.h"
#include "common/security/certificate_authority.h"
#include "common/status.h"
#include "launcher/hosts/host_check.h"
#include "launcher/hosts/remote_messages.h"

namespace leeway {
namespace {

// The environment variable that names a folder with keys on this machine.
constexpr char kKeysVariable[] = "LEEWAY_TLS_DIR";
constexpr uint64_t kPemBytesMax = 64 << 10;

class RemoteProcess : public JobProcess {
 public:
  RemoteProcess(std::string name, std::string host, std::unique_ptr<SshSession> session)
      : name_(std::move(name)), host_(std::move(host)), session_(std::move(session)) {}

  const std::string& name() const override { return name_; }
  pid_t pid() const override { return pid_; }
  int fd() const override { return session_->fd(); }
  // Returns false, because a debugger would be visible only on the host.
  bool Traced() const override { return false; }
  bool Includes(pid_t pid) const override { return pid == pid_; }

  absl::StatusOr<News> TakeNews() override {
    ASSIGN_OR_RETURN(const SshSession::Taken taken, session_->Take());
    News news;
    for (const RemoteNews& each : taken.news) {
      if (each.pid.has_value()) pid_ = *each.pid;
      if (each.ready.has_value()) news.ready = each.ready;
      if (each.exit.has_value()) exit_ = each.exit;
    }
    // When the connection ends, the process has ended, too, because the remote end kills it.
    if (taken.exit.has_value()) news.exit = ExitOf(*taken.exit);
    return news;
  }

  void Signal(int signal) override {
    session_->Send(SignalLine(signal));
    if (signal != SIGKILL) return;
    killed_ = true;
    session_->Hangup();
  }

 private:
  ExitStatus ExitOf(const ExitStatus& ssh) const {
    ExitStatus exit{.code = kExitTemporary};
    // If the connection breaks, the remote end kills the process, and may still report that.
    const bool lost = ssh.signaled && exit_.has_value() && exit_->signaled;
    if (exit_.has_value() && !lost) {
      exit = *exit_;
      exit.words = absl::StrCat(exit.ToString(), " on ", host_);
    } else if (killed_) {
      exit = {.signaled = true, .code = SIGKILL};
    } else {
      exit.words =
          absl::StrCat("the connection to ", host_, " (ssh ended with ", ssh.ToString(), ")");
    }
    return exit;
  }

  const std::string name_;
  const std::string host_;
  const std::unique_ptr<SshSession> session_;
  pid_t pid_ = 0;
  bool killed_ = false;
  // The exit status that the host has reported.
  std::optional<ExitStatus> exit_;
};

// Adds the environment, and the contents of the keys, which are in a folder on this machine.
absl::Status AddEnvironment(const Environment& environment, RemoteRequest& request) {
  for (const auto& [name, value] : environment) {
    if (name != kKeysVariable || value.empty()) {
      request.environment.emplace_back(name, value);
      continue;
    }
    for (const char* file : {kCaFile, kCertificateFile, kKeyFile}) {
      ASSIGN_OR_RETURN(std::string content, ReadFile(absl::StrCat(value, "/", file), kPemBytesMax));
      request.keys.emplace_back(file, std::move(content));
    }
  }
  return absl::OkStatus();
}

int FileMask() {
  const mode_t mask = umask(077);
  umask(mask);
  return static_cast<int>(mask);
}

std::string Bracketed(const std::string& address) {
  return address.find(':') == std::string::npos ? address : absl::StrCat("[", address, "]");
}

}  // namespace

absl::StatusOr<std::unique_ptr<SshHosts>> SshHosts::Connect(std::vector<JobHost> hosts,
                                                            SshCommand ssh) {
  RETURN_IF_ERROR(CheckHosts(ssh, hosts));
  return std::unique_ptr<SshHosts>(new SshHosts(std::move(hosts), std::move(ssh)));
}

bool SshHosts::beyond_loopback() const { return ReachesBeyondLoopback(hosts_[0]); }

void SshHosts::ShareFile(std::string path, std::string content) {
  shared_file_ = std::move(path);
  shared_content_ = std::move(content);
}

std::string SshHosts::ServerListens(uint32_t index) const {
  return absl::StrCat(Bracketed(hosts_[HostOfServer(hosts_, index)].address), ":0");
}

std::string SshHosts::WorkerListens(uint32_t rank) const {
  return absl::StrCat(Bracketed(hosts_[HostOfWorker(hosts_, rank)].address), ":0");
}

absl::StatusOr<std::unique_ptr<JobProcess>> SshHosts::Start(const Launch& launch) {
  const size_t place =
      launch.server ? HostOfServer(hosts_, launch.number) : HostOfWorker(hosts_, launch.number);
  const JobHost& host = hosts_[place];
  const std::string name = absl::StrCat(launch.name(), " on ", host.name);
  std::error_code error;
  RemoteRequest request{.version = kVersion,
                        .program = launch.program(),
                        .command = launch.command,
                        .name = launch.name(),
                        .arguments = launch.arguments,
                        .folder = std::filesystem::current_path(error).string(),
                        .file_mask = FileMask(),
                        .announces_ready = launch.announces_ready};
  if (launch.holds_blocks) {
    request.shared_file = shared_file_;
    request.shared_content = shared_content_;
  }
  RETURN_IF_ERROR(AddEnvironment(launch.environment, request));
  ASSIGN_OR_RETURN(std::unique_ptr<SshSession> session,
                   SshSession::Open(ssh_, host.name, name, launch.log_file, RequestLine(request)));
  return std::unique_ptr<JobProcess>(
      std::make_unique<RemoteProcess>(name, host.name, std::move(session)));
}

}  // namespace leeway
