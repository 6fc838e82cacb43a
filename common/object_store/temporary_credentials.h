// Credentials that a service gives for a while, and again before they expire.
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

// What a service gives.
struct ExpiringCredentials {
  Credentials credentials;
  absl::Time expires = absl::InfinitePast();
};

struct TemporaryCredentialsOptions {
  // Asks the service once, with what is in the token file.
  std::function<absl::StatusOr<ExpiringCredentials>(const std::string& token)> ask;
  // What the service knows this process by. Read for each request to the service; a file that has
  // changed is a reason for one. Empty: there is none.
  std::string token_file = {};
  // What the file is, for errors: "credentials of ROLE by AWS_WEB_IDENTITY_TOKEN_FILE".
  std::string what = {};
  std::function<absl::Time()> now = absl::Now;
};

// Asks the service at the first use, five minutes before the credentials expire (a quarter of their
// life, if that is shorter), and when the token file has changed. While the last ones are valid,
// only one caller waits for the answer, and a failure is logged and tried again later.
class TemporaryCredentials final : public CredentialSource {
 public:
  explicit TemporaryCredentials(TemporaryCredentialsOptions options)
      : options_(std::move(options)) {}

  absl::StatusOr<Credentials> Get() override EXCLUDES(mutex_);
  bool Renew(const Credentials& refused) override EXCLUDES(mutex_);

 private:
  bool IsDue(absl::Time now) const REQUIRES(mutex_);
  // Leaves the lock while it asks.
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
  // Of the last request, and when it was.
  absl::Status failure_ GUARDED_BY(mutex_);
  absl::Time failed_at_ GUARDED_BY(mutex_);
};

}  // namespace leeway
