// Credentials that a service issues for a limited time. This process requests new ones before they
// expire.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/mutex.h"
#include "common/object_store/credential_source.h"
#include "common/object_store/http.h"

namespace leeway {

// The credentials in a service's answer, and the time at which they expire.
struct ExpiringCredentials {
  Credentials credentials;
  absl::Time expires = absl::InfinitePast();
};

struct TemporaryCredentialsOptions {
  // Asks the service once, with the content of the token file.
  std::function<absl::StatusOr<ExpiringCredentials>(const std::string& token)> ask;
  // The file with the token that proves this process's identity to the service. The file is read
  // for each request to the service, and a change in the file causes a request. Empty if the
  // service needs no token.
  std::string token_file = {};
  // Describes the token file in errors: "credentials of ROLE by AWS_WEB_IDENTITY_TOKEN_FILE".
  std::string what = {};
  std::function<absl::Time()> now = absl::Now;
};

// Asks the service at the first use, when the token file has changed, and five minutes before the
// credentials expire (or after three quarters of their lifetime, if that is later). While the
// previous credentials are valid, only one caller waits for the answer, and a failure is only
// logged. A later call tries again.
class TemporaryCredentials final : public CredentialSource {
 public:
  explicit TemporaryCredentials(TemporaryCredentialsOptions options)
      : options_(std::move(options)) {}

  absl::StatusOr<Credentials> Get() override EXCLUDES(mutex_);
  bool Renew(const Credentials& refused) override EXCLUDES(mutex_);

 private:
  bool IsDue(absl::Time now) const REQUIRES(mutex_);
  // Asks the service. Releases the lock while it waits for the answer.
  void Ask(absl::Time now) REQUIRES(mutex_);
  absl::StatusOr<ExpiringCredentials> AskOnce(const absl::StatusOr<std::string>& token) const;
  absl::StatusOr<std::string> Token() const;

  const TemporaryCredentialsOptions options_;
  Mutex mutex_;
  CondVar answered_;
  bool asking_ GUARDED_BY(mutex_) = false;
  ExpiringCredentials given_ GUARDED_BY(mutex_);
  absl::Time renew_at_ GUARDED_BY(mutex_) = absl::InfinitePast();
  // The token of the last request.
  std::string token_ GUARDED_BY(mutex_);
  // The error of the last request, and its time.
  absl::Status failure_ GUARDED_BY(mutex_);
  absl::Time failed_at_ GUARDED_BY(mutex_);
};

}  // namespace leeway
