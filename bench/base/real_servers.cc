#include "bench/base/real_servers.h"

#include <cerrno>

#include <poll.h>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/process/process_usage.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr int kReadyWithinMs = 60'000;
constexpr uint64_t kLogBytesMax = 1 << 20;

// Waits for the server's ready message, and returns the address in it.
absl::StatusOr<std::string> WaitUntilReady(Process& server) {
  while (true) {
    pollfd wait{.fd = server.ready_fd(), .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, kReadyWithinMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return absl::DeadlineExceededError(absl::StrCat(server.name(), " did not start in time"));
    }
    bool complete = false;
    ASSIGN_OR_RETURN(std::string line, server.ReadReady(&complete));
    if (complete) return line;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<RealServers>> RealServers::Start(const std::string& program_folder,
                                                                const std::string& yaml,
                                                                uint32_t servers) {
  std::unique_ptr<RealServers> started(new RealServers);
  ASSIGN_OR_RETURN(started->folder_, TemporaryFolder::Make("leeway-bench"));
  RETURN_IF_ERROR(WriteFileAtomically(started->folder() + "/job.yaml", yaml));
  for (uint32_t index = 0; index < servers; ++index) {
    RETURN_IF_ERROR(started->StartServer(program_folder, index));
  }
  return started;
}

absl::Status RealServers::StartServer(const std::string& program_folder, uint32_t index) {
  ProcessSpec spec;
  spec.name = absl::StrCat("server ", index);
  spec.arguments = {program_folder + "/leeway-server", "--index", std::to_string(index)};
  const std::vector<std::string> more =
      index == 0 ? std::vector<std::string>{"--job", folder() + "/job.yaml", "--run-dir",
                                            run_folder(), "--no-outcome"}
                 : std::vector<std::string>{"--coordinator", coordinator_};
  spec.arguments.insert(spec.arguments.end(), more.begin(), more.end());
  spec.output_file = absl::StrCat(folder(), "/server-", index, ".log");
  spec.announces_ready = true;
  ASSIGN_OR_RETURN(std::unique_ptr<Process> server, Process::Start(spec));
  auto address = WaitUntilReady(*server);
  if (!address.ok()) {
    const auto log = ReadFile(spec.output_file, kLogBytesMax);
    return Annotate(address.status(), log.ok() ? *log : spec.name);
  }
  if (index == 0) coordinator_ = *address;
  processes_.push_back(std::move(server));
  return absl::OkStatus();
}

std::vector<uint64_t> RealServers::MemoryBytes() const {
  std::vector<uint64_t> bytes;
  for (const auto& server : processes_) bytes.push_back(leeway::MemoryBytes(server->pid()));
  return bytes;
}

std::vector<uint64_t> RealServers::PeakBytes() const {
  std::vector<uint64_t> bytes;
  for (const auto& server : processes_) bytes.push_back(PeakMemoryBytes(server->pid()));
  return bytes;
}

double RealServers::CpuSeconds() const {
  double seconds = 0;
  for (const auto& server : processes_) seconds += ProcessCpuSeconds(server->pid());
  return seconds;
}

}  // namespace leeway
