// Supplies a client with credentials while it works.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/object_store/http.h"

namespace leeway {

// Thread-safe.
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  // Returns the credentials for the next request. Blocks while it asks a service. Returns
  // UNAVAILABLE if the service does not answer but may answer later.
  virtual absl::StatusOr<Credentials> Get() = 0;
  // Call this function when the store has refused these credentials as wrong or expired. Returns
  // false if there are no other credentials.
  virtual bool Renew(const Credentials& refused) = 0;
};

// Credentials from the environment or a profile.
class KeptCredentials final : public CredentialSource {
 public:
  // `find` reads the environment or the profile again, which may have new credentials by then. If
  // `find` is null, credentials are never read again.
  explicit KeptCredentials(Credentials credentials,
                           std::function<absl::StatusOr<Credentials>()> find = nullptr)
      : find_(std::move(find)), credentials_(std::move(credentials)) {}

  absl::StatusOr<Credentials> Get() override EXCLUDES(mutex_);
  bool Renew(const Credentials& refused) override EXCLUDES(mutex_);

 private:
  const std::function<absl::StatusOr<Credentials>()> find_;
  Mutex mutex_;
  Credentials credentials_ GUARDED_BY(mutex_);
};

}  // namespace leeway
