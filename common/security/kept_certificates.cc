#include "common/security/kept_certificates.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/descriptor.h"
#include "common/security/role.h"
#include "common/status.h"

namespace leeway {
namespace {

Caller HolderOf(const CertificatePem& pem) { return CallerOf(pem.uris).value_or(Caller{}); }

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
               : absl::UnavailableError("TLS needs /proc, which is missing or cannot be read");
  }
  // dup3 replaces the file atomically, so a reader that opens the path gets either the old content
  // or the new content.
  return dup3(*made, descriptor, O_CLOEXEC) >= 0
             ? absl::OkStatus()
             : absl::ErrnoToStatus(errno, "renewing certificates in memory (dup3)");
}

absl::StatusOr<std::shared_ptr<KeptCertificates>> KeptCertificates::Start(CertificatePaths paths,
                                                                          Duration look_every) {
  ASSIGN_OR_RETURN(CertificatePem pem, ReadCertificateFiles(paths));
  std::shared_ptr<KeptCertificates> kept(new KeptCertificates(std::move(paths)));
  kept->holder_ = HolderOf(pem);
  {
    MutexLock lock(kept->mutex_);
    const absl::Status taken = kept->Take(pem);
    if (!taken.ok()) return absl::UnavailableError(taken.message());
  }
  kept->watch_ =
      std::make_unique<FileWatch>([here = kept.get()] { return here->TakeFiles(); }, look_every);
  return kept;
}

absl::Status KeptCertificates::Take(const CertificatePem& pem) {
  RETURN_IF_ERROR(ca_.Set(pem.ca));
  if (!pem.certificate.empty()) {
    RETURN_IF_ERROR(identity_.Set(absl::StrCat(pem.certificate, "\n", pem.key)));
  }
  taken_ = pem;
  return absl::OkStatus();
}

absl::Status KeptCertificates::TakeFiles() {
  ASSIGN_OR_RETURN(const CertificatePem read, ReadCertificateFiles(paths_));
  MutexLock lock(mutex_);
  if (read == taken_) return absl::OkStatus();
  if (const Caller holder = HolderOf(read);
      holder.role != holder_.role || holder.trust_domain != holder_.trust_domain) {
    return absl::InvalidArgumentError(absl::StrCat(paths_.certificate, ": is ", Described(holder),
                                                   ", but this process has ", Described(holder_),
                                                   "; restart the process to change it"));
  }
  RETURN_IF_ERROR(Take(read));
  spdlog::info("{}: new certificates, in use from now on",
               paths_.certificate.empty() ? paths_.ca : paths_.certificate);
  return absl::OkStatus();
}

}  // namespace leeway
