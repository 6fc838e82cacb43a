// Checks what Kubernetes accepts as names and quantities, before a manifest contains them. Each
// error is INVALID_ARGUMENT, and begins with `what`: "--name Train: ...".
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

constexpr size_t kHostLabelLength = 63;
constexpr size_t kObjectNameLength = 253;

// A DNS label that begins with a letter (RFC 1035), for names that become host names.
absl::Status CheckHostLabel(absl::string_view what, absl::string_view name,
                            size_t longest = kHostLabelLength);
// A DNS subdomain (RFC 1123), for the names of most objects.
absl::Status CheckObjectName(absl::string_view what, absl::string_view name,
                             size_t longest = kObjectNameLength);
// A key of a ConfigMap, for files that pods mount from one.
absl::Status CheckFileName(absl::string_view what, absl::string_view name);
// HOST:PORT/PATH:TAG@DIGEST; only PATH is required.
absl::Status CheckImage(absl::string_view what, absl::string_view image);
// "512Mi", "10Gi", "1500M": above zero, without fractions.
absl::Status CheckBytes(absl::string_view what, absl::string_view quantity);

}  // namespace leeway
