// Checks whether Kubernetes will accept names and quantities, before they go into a manifest. Each
// error is INVALID_ARGUMENT and begins with `what` and the name, such as "--name Train: ".
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

constexpr size_t kHostLabelLength = 63;
constexpr size_t kObjectNameLength = 253;

// Checks a name that becomes a host name. It must be a DNS label that begins with a letter (RFC
// 1035).
absl::Status CheckHostLabel(absl::string_view what, absl::string_view name,
                            size_t longest = kHostLabelLength);
// Checks the name of an object. Most objects need a DNS subdomain (RFC 1123).
absl::Status CheckObjectName(absl::string_view what, absl::string_view name,
                             size_t longest = kObjectNameLength);
// Checks the name of a file that pods mount from a ConfigMap, which is a key of the ConfigMap.
absl::Status CheckFileName(absl::string_view what, absl::string_view name);
// Checks an image, HOST:PORT/PATH:TAG@DIGEST. Only PATH is required.
absl::Status CheckImage(absl::string_view what, absl::string_view image);
// Checks a number of bytes, such as "512Mi", "10Gi" or "1500M". It must be a whole number above
// zero.
absl::Status CheckBytes(absl::string_view what, absl::string_view quantity);

}  // namespace leeway
