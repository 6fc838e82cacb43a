#include "common/security/kept_certificates.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <set>
#include <utility>

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/descriptor.h"
#include "common/status.h"

namespace leeway {
namespace {

struct Watchers {
  Mutex mutex;
  std::set<KeptCertificates*> all GUARDED_BY(mutex);
};
// Never destroyed.
Watchers& Watching() {
  static auto* watchers = new Watchers();
  return *watchers;
}

// What is registered last runs first: OpenSSL, which has been used by now, ends after it.
void StopAtExit(KeptCertificates* kept) {
  static const pid_t process = getpid();
  static const int registered = std::atexit([] {
    // A fork has none of the threads.
    if (getpid() != process) return;
    MutexLock lock(Watching().mutex);
    for (KeptCertificates* each : Watching().all) each->Stop();
  });
  static_cast<void>(registered);
  MutexLock lock(Watching().mutex);
  Watching().all.insert(kept);
}

}  // namespace

absl::Status KeptCertificates::MemoryFile::Set(const std::string& content) {
  Descriptor made(memfd_create("leeway-certificates", MFD_CLOEXEC));
  const timespec time = {.tv_sec = ++changes, .tv_nsec = 0};
  const timespec times[] = {time, time};
  const auto size = static_cast<ssize_t>(content.size());
  const bool written = *made >= 0 && write(*made, content.data(), content.size()) == size &&
                       futimens(*made, times) == 0;
  if (!written) return absl::ErrnoToStatus(errno, "keeping certificates in memory (memfd_create)");
  if (descriptor < 0) {
    descriptor = made.Release();
    path = absl::StrCat("/proc/self/fd/", descriptor);
    return access(path.c_str(), R_OK) == 0
               ? absl::OkStatus()
               : absl::UnavailableError("TLS needs /proc, which is not there or refuses");
  }
  // At once: whoever opens the path gets the one or the other.
  return dup3(*made, descriptor, O_CLOEXEC) >= 0
             ? absl::OkStatus()
             : absl::ErrnoToStatus(errno, "renewing certificates in memory (dup3)");
}

absl::StatusOr<std::shared_ptr<KeptCertificates>> KeptCertificates::Start(CertificatePaths paths,
                                                                          Duration look_every) {
  ASSIGN_OR_RETURN(CertificatePem pem, ReadCertificateFiles(paths));
  std::shared_ptr<KeptCertificates> kept(new KeptCertificates(std::move(paths)));
  {
    MutexLock lock(kept->mutex_);
    const absl::Status taken = kept->Take(pem);
    if (!taken.ok()) return absl::UnavailableError(taken.message());
  }
  StopAtExit(kept.get());
  kept->thread_ = std::thread([here = kept.get(), look_every] { here->Run(look_every); });
  return kept;
}

KeptCertificates::~KeptCertificates() {
  {
    MutexLock lock(Watching().mutex);
    Watching().all.erase(this);
  }
  Stop();
}

void KeptCertificates::Stop() {
  {
    MutexLock lock(mutex_);
    over_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status KeptCertificates::Take(const CertificatePem& pem) {
  RETURN_IF_ERROR(ca_.Set(pem.ca));
  if (!pem.certificate.empty()) {
    RETURN_IF_ERROR(identity_.Set(absl::StrCat(pem.certificate, "\n", pem.key)));
  }
  taken_ = pem;
  return absl::OkStatus();
}

void KeptCertificates::Look() {
  const auto read = ReadCertificateFiles(paths_);
  MutexLock lock(mutex_);
  if (!read.ok()) return Refuse(read.status());
  if (*read != taken_) {
    if (const absl::Status taken = Take(*read); !taken.ok()) return Refuse(taken);
    spdlog::info("{}: new certificates, in use from now on",
                 paths_.certificate.empty() ? paths_.ca : paths_.certificate);
  }
  refused_.clear();
  told_ = false;
}

void KeptCertificates::Refuse(const absl::Status& why) {
  const std::string reason(why.message());
  if (reason != std::exchange(refused_, reason)) {
    told_ = false;
  } else if (!std::exchange(told_, true)) {
    spdlog::warn("{}; this process goes on with the certificates that it read before", reason);
  }
}

void KeptCertificates::Run(Duration look_every) {
  while (true) {
    {
      const Time until = std::chrono::steady_clock::now() + look_every;
      MutexLock lock(mutex_);
      while (!over_ && changed_.WaitUntil(mutex_, until)) {
      }
      if (over_) return;
    }
    Look();
  }
}

}  // namespace leeway
