// HTTP with libcurl, which also signs the requests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/mutex.h"
#include "common/object_store/http.h"

namespace leeway {

// Thread-safe. Keeps connections open for later requests.
class CurlTransport final : public HttpTransport {
 public:
  // `ca_file` has the certificates to trust. If empty, the certificates of the operating system are
  // trusted.
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
  // The libcurl handles that no request uses now. Their connections stay open.
  std::vector<Handle> idle_ GUARDED_BY(mutex_);
};

}  // namespace leeway
