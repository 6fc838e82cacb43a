// The plugins of a job: what they bring, found by name.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/repeated_ptr_field.h>

#include "absl/status/statusor.h"
#include "common/plugins/open_plugin.h"
#include "leeway/v1/job.pb.h"
#include "plugin/leeway/plugin.h"

namespace leeway {

// Something that a plugin brings, and the options that the job gives it.
template <typename Spec>
struct ChosenPlugin {
  const Spec* spec = nullptr;
  plugin::Options options;
};

// Cheap to copy. Immutable and thread-safe.
class Plugins {
 public:
  // None.
  Plugins() = default;
  // Of `model.plugins`. Errors are OpenPluginNamed's, at that key (common/job_key.h), and
  // FAILED_PRECONDITION where two of them bring the same name.
  static absl::StatusOr<Plugins> Load(const v1::Model& model);

  // INVALID_ARGUMENT at the key within the message: name, rule, options.NAME.
  absl::StatusOr<ChosenPlugin<plugin::LayerSpec>> Layer(const v1::Custom& custom) const;
  absl::StatusOr<ChosenPlugin<plugin::LossSpec>> Loss(const v1::Custom& custom) const;
  absl::StatusOr<ChosenPlugin<plugin::RuleSpec>> Rule(const v1::CustomRule& custom) const;

 private:
  std::vector<const OpenPlugin*> plugins_;
};

}  // namespace leeway
