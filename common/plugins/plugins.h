// The plugins of a job. Finds their layers, losses and rules by name.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/repeated_ptr_field.h>

#include "absl/status/statusor.h"
#include "common/plugins/open_plugin.h"
#include "leeway/v1/job.pb.h"
#include "plugin/leeway/plugin.h"

namespace leeway {

// A layer, loss or rule of a plugin, with the options that the job sets for it.
template <typename Spec>
struct ChosenPlugin {
  const Spec* spec = nullptr;
  plugin::Options options;
};

// Cheap to copy. Immutable and thread-safe.
class Plugins {
 public:
  // A job without plugins.
  Plugins() = default;
  // Loads the plugins in `model.plugins`. Returns the errors of OpenPluginNamed, and
  // FAILED_PRECONDITION if two plugins use the same name. The key of an error (common/job_key.h) is
  // model.plugins.
  static absl::StatusOr<Plugins> Load(const v1::Model& model);

  // Return INVALID_ARGUMENT if the plugins have no such entry or an option is wrong. The error's
  // key (common/job_key.h) is name, rule or options.NAME.
  absl::StatusOr<ChosenPlugin<plugin::LayerSpec>> Layer(const v1::Custom& custom) const;
  absl::StatusOr<ChosenPlugin<plugin::LossSpec>> Loss(const v1::Custom& custom) const;
  absl::StatusOr<ChosenPlugin<plugin::RuleSpec>> Rule(const v1::CustomRule& custom) const;

 private:
  std::vector<const OpenPlugin*> plugins_;
};

}  // namespace leeway
