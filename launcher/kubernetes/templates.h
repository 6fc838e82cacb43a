// The templates of deploy/kubernetes, which the build puts into the program.
#pragma once

#include "absl/strings/string_view.h"

namespace leeway {

// Returns a template. `name` is the file's name without its suffix. Returns an empty string for an
// unknown name.
absl::string_view KubernetesTemplate(absl::string_view name);

}  // namespace leeway
