// The store's address and the credentials, from the sources that other S3 clients use, too.
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
  // The store's address, http://HOST:PORT. If empty, Amazon's endpoint is used.
  std::string endpoint;
  // The file with the certificates to trust. If empty, the operating system's certificates are
  // trusted.
  std::string ca_file;
  // The size of one part of a large upload, in bytes.
  uint64_t part_bytes = 0;
  // How long a failed request is repeated, and how long a transfer may stand still before its
  // request fails.
  Duration retry_total{};
  Duration stall{};
};

// Reads the settings. The credentials are those of credential_places.h. The region is the first of
// AWS_REGION, AWS_DEFAULT_REGION, the profile's region in AWS_CONFIG_FILE (~/.aws/config) and
// us-east-1. The endpoint is in AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, and the file of trusted
// certificates in AWS_CA_BUNDLE. docs/storage.md has the other variables. Returns INVALID_ARGUMENT,
// naming the variable, if credentials are missing or a value is not valid.
absl::StatusOr<StoreSettings> FindStoreSettings(const EnvironmentLookup& look_up);

}  // namespace leeway
