// Credentials that a service gives for a limited time, and renews before they expire.
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

// The answer of a service.
struct ExpiringCredentials {
  Credentials credentials;
  absl::Time expires = absl::InfinitePast();
};

struct TemporaryCredentialsOptions {
  // Asks the service once, with the content of the token file.
  std::function<absl::StatusOr<ExpiringCredentials>(const std::string& token)> ask;
  // The file with the token by which the service knows this process. It is read for each request to
  // the service, and a change in the file causes a request. Empty: the service needs no token.
  std::string token_file = {};
  // Describes the file in errors: "credentials of ROLE by AWS_WEB_IDENTITY_TOKEN_FILE".
  std::string what = {};
  std::function<absl::Time()> now = absl::Now;
};

// Asks the service at the first use, when the token file has changed, and five minutes before the
// credentials expire (or after three quarters of their life, if that is later). While the previous
// credentials are valid, only one caller waits for the answer; a failure is logged, and a later
// call tries again.
class TemporaryCredentials final : public CredentialSource {
 public:
  explicit TemporaryCredentials(TemporaryCredentialsOptions options)
      : options_(std::move(options)) {}

  absl::StatusOr<Credentials> Get() override EXCLUDES(mutex_);
  bool Renew(const Credentials& refused) override EXCLUDES(mutex_);

 private:
  bool IsDue(absl::Time now) const REQUIRES(mutex_);
  // Releases the lock while the service is asked.
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
