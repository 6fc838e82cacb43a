// The store's address and the credentials, from the sources that other S3 clients use.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/environment.h"
#include "common/object_store/credential_places.h"
#include "common/object_store/http.h"

namespace leeway {

struct StoreSettings {
  CredentialPlace credentials;
  std::string region;
  // http://HOST:PORT; empty: Amazon's endpoint.
  std::string endpoint;
  // Empty: the system's certificates.
  std::string ca_file;
  // The size of one part of a large upload.
  uint64_t part_bytes = 0;
  // How long in total a failed request is repeated, and after how long without a byte a request
  // fails.
  Duration retry_total{};
  Duration stall{};
};

// Credentials: credential_places.h. Region: AWS_REGION, AWS_DEFAULT_REGION, the profile's in
// AWS_CONFIG_FILE (~/.aws/config), us-east-1. Endpoint: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL.
// Trusted certificates: AWS_CA_BUNDLE. (docs/storage.md has the others.) INVALID_ARGUMENT, naming
// the variable, if credentials are missing or a value is not valid.
absl::StatusOr<StoreSettings> FindStoreSettings(const EnvironmentLookup& look_up);

}  // namespace leeway
