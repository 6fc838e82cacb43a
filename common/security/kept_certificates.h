// The certificates of this process while their files change: another set is taken when it is whole
// and passes, and until then the one before stays.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/security/certificate_files.h"
#include "common/security/file_watch.h"
#include "common/security/role.h"

namespace leeway {

// A library that watches files by itself (gRPC) is given the files of this object in place of the
// real ones: memory without a name, whose content is at every moment a set that passed the check.
// They stay for as long as the process does, since the library looks at them for as long as it has
// a connection.
//
// Thread-safe. Looks at the files on a thread of its own.
class KeptCertificates {
 public:
  // As ReadCertificateFiles; UNAVAILABLE if the system has no memory for them.
  static absl::StatusOr<std::shared_ptr<KeptCertificates>> Start(
      CertificatePaths paths, Duration look_every = FileWatch::kLookEvery);
  KeptCertificates(const KeptCertificates&) = delete;

  // Paths of this process, in PEM. The second holds the certificate and the key, so that nobody
  // reads one of them without the other.
  const std::string& ca_file() const { return ca_.path; }
  const std::string& identity_file() const { return identity_.path; }
  // Whom the certificate names (role.h): nobody, where it names no role. A set of another role or
  // trust domain is not taken.
  const Caller& holder() const { return holder_; }

  // Looks at the files once (FileWatch). The log says when another set is taken.
  void Look() { watch_->Look(); }

 private:
  // Memory that is reached as a file, by the path of a descriptor.
  struct MemoryFile {
    int descriptor = -1;
    std::string path;
    // All its contents differ in their time of change, by which readers see that it has changed.
    int64_t changes = 0;

    absl::Status Set(const std::string& content);
  };

  explicit KeptCertificates(CertificatePaths paths) : paths_(std::move(paths)) {}
  absl::Status Take(const CertificatePem& pem) REQUIRES(mutex_);
  absl::Status TakeFiles() EXCLUDES(mutex_);

  const CertificatePaths paths_;
  // Constant after Start, and so are the files' paths.
  Caller holder_;
  MemoryFile ca_;
  MemoryFile identity_;

  Mutex mutex_;
  CertificatePem taken_ GUARDED_BY(mutex_);
  // Last: its thread ends first.
  std::unique_ptr<FileWatch> watch_;
};

}  // namespace leeway
