#include "config/brought_update.h"

#include <memory>
#include <vector>

#include <google/protobuf/util/message_differencer.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "config/decode.h"
#include "config/problems.h"
#include "config/resolve.h"
#include "config/validate.h"
#include "config/yaml_tree.h"

namespace leeway {
namespace {

std::string KeyedFaults(const std::vector<Fault>& faults) {
  return absl::StrJoin(faults, "; ", [](std::string* out, const Fault& fault) {
    absl::StrAppend(out, fault.path, ": ", fault.message);
  });
}

}  // namespace

absl::StatusOr<v1::Update> ParseUpdate(std::string_view yaml) {
  const auto source = std::make_shared<const Source>(Source{"update", false, ""});
  ASSIGN_OR_RETURN(const YamlNode root, ReadYaml(yaml, source));
  if (root.kind != YamlNode::Kind::kMap) {
    return absl::InvalidArgumentError(
        "update: must be a map of keys, such as {type: sgd, learning_rate: 0.1}");
  }
  Problems problems;
  v1::Update update;
  Decode(root, "", update, problems);
  RETURN_IF_ERROR(problems.ToStatus());
  const std::vector<Fault> faults = FindUpdateFaults(update);
  if (!faults.empty()) return absl::InvalidArgumentError(KeyedFaults(faults));
  return update;
}

absl::StatusOr<v1::Update> ResolveBroughtUpdate(const v1::Update& brought) {
  const std::vector<Fault> faults = FindUpdateFaults(brought);
  if (!faults.empty()) return absl::InvalidArgumentError(KeyedFaults(faults));
  if (brought.has_custom()) {
    return absl::InvalidArgumentError(
        "update: a program cannot bring a plugin's rule: write the rule into the job, with "
        "model.plugins");
  }
  v1::Update update = brought;
  RETURN_IF_ERROR(ResolveUpdate(update));
  return update;
}

bool MeansRule(const v1::Update& brought, const v1::Update& rule) {
  v1::Update meant = brought;
  if (!meant.has_schedule() && rule.has_schedule()) *meant.mutable_schedule() = rule.schedule();
  if (!meant.has_factors() && rule.has_factors()) *meant.mutable_factors() = rule.factors();
  if (!meant.has_scaling()) meant.set_scaling(rule.scaling());
  if (!meant.has_average() && rule.has_average()) *meant.mutable_average() = rule.average();
  return ResolveUpdate(meant).ok() &&
         google::protobuf::util::MessageDifferencer::Equivalent(meant, rule);
}

}  // namespace leeway
