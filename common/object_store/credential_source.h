// Where a client takes its credentials from while it works.
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
  // To sign the next request with; blocks where a service has to be asked. UNAVAILABLE: it may
  // answer later.
  virtual absl::StatusOr<Credentials> Get() = 0;
  // The store has refused these as wrong or expired. False: there are no others.
  virtual bool Renew(const Credentials& refused) = 0;
};

// Of the environment or a profile.
class KeptCredentials final : public CredentialSource {
 public:
  // `find` looks at the same place again, where others may have been left by now. Null: there is no
  // such place.
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
