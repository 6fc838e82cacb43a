// The templates of deploy/kubernetes, which the build puts into the program.
#pragma once

#include "absl/strings/string_view.h"

namespace leeway {

// By the file's name without its end; empty: there is none.
absl::string_view KubernetesTemplate(absl::string_view name);

}  // namespace leeway
