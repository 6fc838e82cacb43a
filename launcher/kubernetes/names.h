// What Kubernetes takes as names and quantities, checked before a manifest has them. Each is
// INVALID_ARGUMENT, beginning with `what`: "--name Train: ...".
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

constexpr size_t kHostLabelLength = 63;
constexpr size_t kObjectNameLength = 253;

// A label of DNS that begins with a letter (RFC 1035), as names are that become host names.
absl::Status CheckHostLabel(absl::string_view what, absl::string_view name,
                            size_t longest = kHostLabelLength);
// A subdomain of DNS (RFC 1123), as names of most objects are.
absl::Status CheckObjectName(absl::string_view what, absl::string_view name,
                             size_t longest = kObjectNameLength);
// A key of a ConfigMap, as files are that pods mount from one.
absl::Status CheckFileName(absl::string_view what, absl::string_view name);
// HOST:PORT/PATH:TAG@DIGEST, of which only PATH must be there.
absl::Status CheckImage(absl::string_view what, absl::string_view image);
// "512Mi", "10Gi", "1500M": more than none, without fractions.
absl::Status CheckBytes(absl::string_view what, absl::string_view quantity);

}  // namespace leeway
