// The certificates of this process while their files change. A new set is taken when it is complete
// and passes the check; until then the previous one stays in use.
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

// A library that watches files by itself (gRPC) watches the files of this object instead of the
// real ones. They are unnamed memory, whose content is always a set that passed the check. They
// live as long as the process, because the library reads them as long as it has a connection.
//
// Thread-safe. Checks the files on a thread of its own.
class KeptCertificates {
 public:
  // Errors as in ReadCertificateFiles; also UNAVAILABLE if the system has no memory for the files.
  static absl::StatusOr<std::shared_ptr<KeptCertificates>> Start(
      CertificatePaths paths, Duration look_every = FileWatch::kLookEvery);
  KeptCertificates(const KeptCertificates&) = delete;

  // Paths within this process, in PEM. The second file has the certificate and the key, so that a
  // reader never gets one without the other.
  const std::string& ca_file() const { return ca_.path; }
  const std::string& identity_file() const { return identity_.path; }
  // The caller that the certificate names (role.h); empty if it names no role. A set with another
  // role or trust domain is not taken.
  const Caller& holder() const { return holder_; }

  // Checks the files once (FileWatch). The log says when a new set is taken.
  void Look() { watch_->Look(); }

 private:
  // Memory that can be opened as a file, by the path of a descriptor.
  struct MemoryFile {
    int descriptor = -1;
    std::string path;
    // Each content gets another modification time, by which readers notice the change.
    int64_t changes = 0;

    absl::Status Set(const std::string& content);
  };

  explicit KeptCertificates(CertificatePaths paths) : paths_(std::move(paths)) {}
  absl::Status Take(const CertificatePem& pem) REQUIRES(mutex_);
  absl::Status TakeFiles() EXCLUDES(mutex_);

  const CertificatePaths paths_;
  // The holder and the paths of the two files are constant after Start.
  Caller holder_;
  MemoryFile ca_;
  MemoryFile identity_;

  Mutex mutex_;
  CertificatePem taken_ GUARDED_BY(mutex_);
  // Declared last: its thread ends before the other members are destroyed.
  std::unique_ptr<FileWatch> watch_;
};

}  // namespace leeway
