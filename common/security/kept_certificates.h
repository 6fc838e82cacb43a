// The certificates of this process, whose files may change. New certificates are used as soon as
// all files have changed and pass the checks. Until then the previous certificates stay in use.
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

// A library that watches files itself (gRPC) is given the files of this object, not the user's
// files. The files of this object are in unnamed memory, and always have certificates that have
// passed the checks. They exist until the process ends, because the library reads them as long as
// it has a connection.
//
// Thread-safe. Checks the files on a thread of its own.
class KeptCertificates {
 public:
  // Returns the errors of ReadCertificateFiles, and UNAVAILABLE if the system has no memory for the
  // files.
  static absl::StatusOr<std::shared_ptr<KeptCertificates>> Start(
      CertificatePaths paths, Duration look_every = FileWatch::kLookEvery);
  KeptCertificates(const KeptCertificates&) = delete;

  // Return the paths of the files, in PEM, which only this process can open. The second file has
  // the certificate and the key, so that a reader always gets a certificate with its own key.
  const std::string& ca_file() const { return ca_.path; }
  const std::string& identity_file() const { return identity_.path; }
  // Returns the role, rank and trust domain in the certificate (role.h). All are empty if the
  // certificate has no role. A new certificate with another role or trust domain is refused.
  const Caller& holder() const { return holder_; }

  // Checks the files once (FileWatch). Logs when new certificates come into use.
  void Look() { watch_->Look(); }

 private:
  // Memory that can be opened as a file, with the path of its descriptor.
  struct MemoryFile {
    int descriptor = -1;
    std::string path;
    // The number of changes. It determines the modification time, so that readers detect each
    // change.
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
  // Declared last, so that its thread ends before the other members are destroyed.
  std::unique_ptr<FileWatch> watch_;
};

}  // namespace leeway
