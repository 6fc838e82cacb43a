#include "server/checkpoint/manifest.h"

#include <algorithm>
#include <string>
#include <vector>

#include <google/protobuf/util/message_differencer.h>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/status.h"
#include "common/update/rule.h"
#include "server/checkpoint/json_file.h"
#include "server/checkpoint/saved_file.h"

namespace leeway {
namespace {

// The maximum size of a manifest. 4096 servers and 65536 workers need about 200 bytes each; the
// rest is room for the layers.
constexpr uint64_t kMaxManifestBytes = 64 << 20;

std::string ManifestPath(const std::string& folder) {
  return absl::StrCat(folder, "/", kManifestName);
}

// Returns true if `name` is a plain file name, because the manifest must not name files outside of
// its folder.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

absl::Status CheckFields(const std::string& path, const v1::CheckpointManifest& manifest) {
  if (manifest.format() != kCheckpointFormat) {
    return absl::UnimplementedError(
        absl::StrCat("manifest '", path, "' has format ", manifest.format(),
                     ", but this build reads format ", kCheckpointFormat));
  }
  const v1::ModelSchema& schema = manifest.schema();
  if (schema.total() == 0 || schema.trained() > schema.total() || manifest.shards().empty()) {
    return absl::DataLossError(absl::StrCat(
        "manifest '", path, "' has an impossible model: ", schema.total(), " elements, of which ",
        schema.trained(), " are trained, in ", Counted(manifest.shards_size(), "shard")));
  }
  bool plain = true;
  for (const auto& shard : manifest.shards()) plain = plain && IsPlainName(shard.file());
  for (const auto& state : manifest.worker_states()) {
    plain = plain && IsPlainName(state.file().file());
  }
  return plain ? absl::OkStatus()
               : absl::DataLossError(absl::StrCat(
                     "manifest '", path, "': a file name must be a plain name, without a folder"));
}

// Returns the names of the optimizer slots of the job's update rule. Empty for a rule that this
// build does not know; other checks refuse such a rule.
std::vector<std::string> SlotsOf(const v1::TrainingJob& job) {
  const auto rule = MakeServerRule(job);
  if (!rule.ok()) return {};
  const auto slots = (*rule)->slots();
  return {slots.begin(), slots.end()};
}

absl::Status CheckSlots(const v1::CheckpointManifest& manifest, const v1::TrainingJob& job) {
  const std::vector<std::string> saved = SlotsOf(manifest.job());
  for (const std::string& slot : SlotsOf(job)) {
    if (std::find(saved.begin(), saved.end(), slot) != saved.end()) continue;
    // The checkpoint need not have an average, because an average may begin with the checkpoint's
    // weights.
    if (slot == kAverageSlot) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("update: the checkpoint at clock ", manifest.clock(), " has no '", slot,
                     "', which the job's update rule needs; continue with the rule of the "
                     "checkpoint, or begin a new run in another --run-dir"));
  }
  return absl::OkStatus();
}

// Returns true if an epoch has the same number of clocks in both jobs.
bool KeepsNumbers(const v1::TrainingJob& before, const v1::TrainingJob& job) {
  using google::protobuf::util::MessageDifferencer;
  const auto by_sum = [](const v1::TrainingJob& each) {
    return each.consistency().mode() == v1::CONSISTENCY_MODE_ASYNC;
  };
  return before.workers().count() == job.workers().count() && by_sum(before) == by_sum(job) &&
         MessageDifferencer::Equals(before.exchange(), job.exchange()) &&
         before.data().batch_size() == job.data().batch_size() &&
         before.data().examples() == job.data().examples() &&
         MessageDifferencer::Equals(before.data().train(), job.data().train()) &&
         MessageDifferencer::Equals(before.data().partition(), job.data().partition());
}

template <typename Check>
absl::Status ForEachFile(const std::string& folder, const v1::CheckpointManifest& manifest,
                         Check check) {
  for (const auto& shard : manifest.shards()) RETURN_IF_ERROR(check(folder, shard));
  for (const auto& state : manifest.worker_states()) {
    RETURN_IF_ERROR(check(folder, state.file()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGoesOn(const v1::CheckpointManifest& manifest, const v1::TrainingJob& job) {
  const v1::TrainingJob& before = manifest.job();
  if (!google::protobuf::util::MessageDifferencer::Equals(before.model(), job.model())) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job's model differs from the model of the checkpoint at clock ",
                     manifest.clock(), "; a run must continue with the model that it began with"));
  }
  RETURN_IF_ERROR(CheckSlots(manifest, job));
  if (manifest.has_length() || KeepsNumbers(before, job)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the checkpoint at clock ", manifest.clock(),
      " was written by an older version, which did not record how much data a clock covers. So "
      "workers.count, data, exchange and consistency.mode must be the same as before: change them "
      "only after the next checkpoint"));
}

absl::Status SaveManifest(const std::string& folder, v1::CheckpointManifest manifest) {
  const std::string path = ManifestPath(folder);
  const std::string context = absl::StrCat("writing manifest '", path, "'");
  manifest.set_format(kCheckpointFormat);
  RETURN_IF_ERROR(Annotate(CheckFields(path, manifest), context));
  if (absl::Status files = CheckFileSizes(folder, manifest); !files.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(context, ": ", files.message()));
  }
  return WriteJsonFile("manifest", path, kMaxManifestBytes, manifest);
}

absl::StatusOr<v1::CheckpointManifest> ReadManifest(const std::string& folder) {
  const std::string path = ManifestPath(folder);
  v1::CheckpointManifest manifest;
  RETURN_IF_ERROR(ReadJsonFile("manifest", path, kMaxManifestBytes, manifest));
  RETURN_IF_ERROR(CheckFields(path, manifest));
  return manifest;
}

absl::Status CheckFileSizes(const std::string& folder, const v1::CheckpointManifest& manifest) {
  return ForEachFile(folder, manifest, CheckSize);
}

absl::Status CheckFileDigests(const std::string& folder, const v1::CheckpointManifest& manifest) {
  return ForEachFile(folder, manifest, CheckDigest);
}

}  // namespace leeway
