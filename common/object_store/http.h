// Requests to an object store and its answers, without a library behind them, so that tests answer
// in the store's place.
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

// Whose requests are signed. Never logged.
struct Credentials {
  std::string access_key_id;
  std::string secret_access_key;
  // Of temporary credentials; empty: none.
  std::string session_token;
  bool operator==(const Credentials&) const = default;
};

struct HttpRequest {
  // GET, HEAD, PUT, POST or DELETE.
  std::string method;
  // With path and query in the form in which they are signed.
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers = {};
  // Stays until the answer is there.
  std::span<const uint8_t> body = {};
  // The signature is made for this region. Without an access key the request is not signed.
  std::string region = {};
  Credentials credentials = {};
  // Never by way of a proxy.
  bool direct = false;
  // From the first byte to the last one of the answer.
  Duration deadline{};
  // The request fails if less than a byte a second has moved for so long.
  Duration stall{};
  // An answer with more bytes is an error.
  uint64_t answer_bytes_max = 0;
};

struct HttpAnswer {
  int status = 0;
  // Names in lower case.
  std::map<std::string, std::string> headers;
  std::string body;
  // Empty if there is no such header.
  std::string Header(const std::string& name) const;
};

// Thread-safe.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  // Signs the request (AWS signature, version 4, of S3), sends it once and waits for the answer,
  // whatever its HTTP status. UNAVAILABLE: no whole answer came. FAILED_PRECONDITION: none can
  // come, for example because the store's certificate is not trusted.
  virtual absl::StatusOr<HttpAnswer> Send(const HttpRequest& request) = 0;
};

}  // namespace leeway
