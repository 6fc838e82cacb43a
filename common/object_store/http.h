// Requests to an object store, and its answers. They do not depend on an HTTP library, so tests can
// answer in place of a store.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"

namespace leeway {

// The identity that signs requests. Never logged.
struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  // The token of temporary credentials. Empty for permanent credentials.
  std::string session_token;
  bool operator==(const Credentials&) const = default;
};

struct HttpRequest {
  // GET, HEAD, PUT, POST or DELETE.
  std::string method;
  // The URL. Its path and query have the form in which they are signed.
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers = {};
  // The content of the request. The bytes must live until the answer has arrived.
  std::span<const uint8_t> body = {};
  // The region for which the request is signed. If the credentials have no access key, the request
  // is not signed.
  std::string region = {};
  Credentials credentials = {};
  // If true, the request never goes through a proxy.
  bool direct = false;
  // The time limit from the first byte of the request to the last byte of the answer.
  Duration deadline{};
  // The request fails if the transfer is slower than a byte a second for this time.
  Duration stall{};
  // The maximum number of bytes of the answer. A longer answer is an error.
  uint64_t answer_bytes_max = 0;
};

struct HttpAnswer {
  int status = 0;
  // The headers, with their names in lower case.
  std::map<std::string, std::string> headers;
  std::string body;
  // Returns the value of a header, or an empty string if the answer does not have it.
  std::string Header(const std::string& name) const;
};

// Thread-safe.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  // Signs the request (AWS signature version 4 for S3), sends it once and waits for the answer,
  // whatever its HTTP status is. Returns UNAVAILABLE if no complete answer came. Returns
  // FAILED_PRECONDITION if no answer can come, for example because the store's certificate is not
  // trusted.
  virtual absl::StatusOr<HttpAnswer> Send(const HttpRequest& request) = 0;
};

}  // namespace leeway
