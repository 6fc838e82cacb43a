// The certificates of this process while their files change: another set is taken when it is whole
// and passes, and until then the one before stays.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/security/certificate_files.h"

namespace leeway {

// A library that watches files by itself (gRPC) is given the files of this object in place of the
// real ones: memory without a name, whose content is at every moment a set that passed the check.
// They stay for as long as the process does, since the library looks at them for as long as it has
// a connection.
//
// Thread-safe. Looks at the files on a thread of its own.
class KeptCertificates {
 public:
  static constexpr Duration kLookEvery = std::chrono::seconds(1);

  // As ReadCertificateFiles; UNAVAILABLE if the system has no memory for them.
  static absl::StatusOr<std::shared_ptr<KeptCertificates>> Start(CertificatePaths paths,
                                                                 Duration look_every = kLookEvery);
  ~KeptCertificates();
  KeptCertificates(const KeptCertificates&) = delete;

  // Paths of this process, in PEM. The second holds the certificate and the key, so that nobody
  // reads one of them without the other.
  const std::string& ca_file() const { return ca_.path; }
  const std::string& identity_file() const { return identity_.path; }

  // Looks at the files once. The log says when another set is taken, and once for each reason why
  // one is not: at the second look, for files are written one after the other.
  void Look() EXCLUDES(mutex_);
  // The content stays as it is from now on. Called by itself when the process ends: no thread may
  // use OpenSSL while that is being torn down.
  void Stop() EXCLUDES(mutex_);

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
  void Refuse(const absl::Status& why) REQUIRES(mutex_);
  void Run(Duration look_every) EXCLUDES(mutex_);

  const CertificatePaths paths_;
  // Their paths are constant after Start.
  MemoryFile ca_;
  MemoryFile identity_;

  Mutex mutex_;
  CondVar changed_;
  bool over_ GUARDED_BY(mutex_) = false;
  CertificatePem taken_ GUARDED_BY(mutex_);
  // Why the files were not taken at the last look; empty: they were.
  std::string refused_ GUARDED_BY(mutex_);
  bool told_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace leeway
