// HTTP by libcurl, which also makes the signature.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "common/object_store/http.h"

namespace leeway {

// Thread-safe. Keeps connections for the next requests.
class CurlTransport final : public HttpTransport {
 public:
  // `ca_file`: certificates that are trusted instead of the system's; empty: the system's.
  explicit CurlTransport(std::string ca_file);
  ~CurlTransport() override;

  absl::StatusOr<HttpAnswer> Send(const HttpRequest& request) override;

 private:
  struct Free {
    void operator()(void* handle) const;
  };
  using Handle = std::unique_ptr<void, Free>;
  Handle Take() EXCLUDES(mutex_);
  void Return(Handle handle) EXCLUDES(mutex_);

  const std::string ca_file_;
  Mutex mutex_;
  // Not in use, with their connections.
  std::vector<Handle> idle_ GUARDED_BY(mutex_);
};

}  // namespace leeway
