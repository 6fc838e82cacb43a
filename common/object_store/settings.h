// Where the store is and who asks, from the places that other S3 clients look at.
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
  // http://HOST:PORT; empty: Amazon's.
  std::string endpoint;
  // Empty: the system's.
  std::string ca_file;
  // Of one part of a large upload.
  uint64_t part_bytes = 0;
  // How long a failed request is sent again, in all; and after how long without a byte one fails.
  Duration retry_total{};
  Duration stall{};
};

// Credentials: credential_places.h. Region: AWS_REGION, AWS_DEFAULT_REGION, the profile's in
// AWS_CONFIG_FILE (~/.aws/config), us-east-1. Endpoint: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL.
// Trusted certificates: AWS_CA_BUNDLE. (docs/storage.md has the others.) INVALID_ARGUMENT, naming
// what was looked at, without credentials or with a value that is none.
absl::StatusOr<StoreSettings> FindStoreSettings(const EnvironmentLookup& look_up);

}  // namespace leeway
