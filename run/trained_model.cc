#include "run/trained_model.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/safetensors.h"
#include "common/files/sha256.h"
#include "common/object_store/address.h"
#include "common/protocol.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "common/update/rule.h"
#include "run/run_folder.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/restore.h"

namespace leeway {
namespace {

struct Choice {
  std::string folder;
  std::vector<std::string> passed_over;
};

// Returns whether `path` is an existing file or folder. Returns UNAVAILABLE if the store does not
// answer.
absl::StatusOr<bool> Exists(const std::string& path) {
  std::error_code error;
  if (!IsObjectLocation(path)) return std::filesystem::exists(path, error);
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(path));
  const absl::Status is_file = storage->SizeOf(path).status();
  if (is_file.ok()) return true;
  if (absl::IsUnavailable(is_file)) return is_file;
  const auto names = storage->List(path);
  if (absl::IsUnavailable(names.status())) return names.status();
  return names.ok() && !names->empty();
}

absl::StatusOr<Choice> CheckpointAt(const std::string& run_dir, uint64_t clock) {
  const std::string folder = CheckpointFolder(run_dir, clock);
  // The checkpoint may be incomplete. The code that opens it checks that.
  ASSIGN_OR_RETURN(const bool exists, Exists(folder));
  if (exists) return Choice{folder, {}};
  ASSIGN_OR_RETURN(const std::vector<uint64_t> clocks, CheckpointClocks(run_dir));
  return absl::NotFoundError(absl::StrCat(run_dir, " has no checkpoint at clock ", clock,
                                          clocks.empty() ? "" : "; it has checkpoints at clocks ",
                                          absl::StrJoin(clocks, ", ")));
}

// Returns NOT_FOUND if `path` is not the folder of a run. The error says what to specify instead.
absl::Status CheckRunFolder(const std::string& path) {
  ASSIGN_OR_RETURN(Storage* const storage, StorageOf(path));
  // In an object store: checks whether the store answers and has the bucket.
  if (IsObjectLocation(path)) RETURN_IF_ERROR(storage->List(path).status());
  ASSIGN_OR_RETURN(const bool exists, Exists(path));
  if (!exists) return absl::NotFoundError(absl::StrCat(path, ": the folder does not exist"));
  std::error_code error;
  if (!IsObjectLocation(path) && !std::filesystem::is_directory(path, error)) {
    return absl::NotFoundError(absl::StrCat(
        path,
        " is a file; models are read from checkpoints: specify the run folder that contains it"));
  }
  for (const char* name : {kJobFile, kMetricsFile, kCheckpointsFolder}) {
    ASSIGN_OR_RETURN(const bool has, Exists(absl::StrCat(path, "/", name)));
    if (has) return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat(path, " is not the folder of a run or of a checkpoint: it has no ", kJobFile,
                   ", no ", kCheckpointsFolder, " and no ", kManifestName));
}

// Finds the checkpoint that `path` and `clock` name.
absl::StatusOr<Choice> ChooseCheckpoint(const std::string& path, std::optional<uint64_t> clock) {
  RETURN_IF_ERROR(NormalLocation(path).status());
  ASSIGN_OR_RETURN(const bool is_checkpoint, Exists(absl::StrCat(path, "/", kManifestName)));
  if (is_checkpoint) return Choice{path, {}};
  RETURN_IF_ERROR(CheckRunFolder(path));
  if (clock.has_value()) return CheckpointAt(path, *clock);
  ASSIGN_OR_RETURN(CheckpointSearch search, FindNewestCheckpoint(path));
  if (search.newest.has_value()) {
    return Choice{search.newest->folder, std::move(search.damaged)};
  }
  std::string message = absl::StrCat(path, " holds no complete checkpoint");
  for (const std::string& warning : search.warnings) absl::StrAppend(&message, "\n  ", warning);
  return absl::NotFoundError(message);
}

}  // namespace

absl::StatusOr<TrainedModel> LoadTrainedModel(const std::string& path,
                                              std::optional<uint64_t> clock) {
  ASSIGN_OR_RETURN(Choice choice, ChooseCheckpoint(path, clock));
  ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(choice.folder));
  ASSIGN_OR_RETURN(FloatBuffer weights, reader.ReadAll(kWeightsKey));
  std::optional<FloatBuffer> average;
  if (reader.manifest().job().update().has_average()) {
    ASSIGN_OR_RETURN(average, reader.ReadAll(kAverageSlot));
  }
  ASSIGN_OR_RETURN(RangeProgress progress,
                   reader.Progress({0, reader.manifest().schema().total()}));
  return TrainedModel{std::move(choice.folder),   reader.manifest(),
                      std::move(weights),         std::move(average),
                      std::move(progress.clocks), std::move(choice.passed_over)};
}

std::span<const float> TrainedModel::Evaluated() const {
  const bool averaged = manifest.job().evaluation().weights() == v1::EVALUATED_WEIGHTS_AVERAGE;
  return averaged && average.has_value() ? average->span() : weights.span();
}

absl::StatusOr<std::span<const float>> TrainedModel::Of(v1::EvaluatedWeights which) const {
  if (which == v1::EVALUATED_WEIGHTS_CURRENT) return weights.span();
  if (average.has_value()) return average->span();
  return absl::FailedPreconditionError(absl::StrCat(
      folder, " has no moving average of the weights, because its job has no update.average"));
}

std::map<std::string, std::string> ExportMetadata(const TrainedModel& model,
                                                  std::span<const float> weights,
                                                  const std::string& format) {
  const v1::CheckpointManifest& manifest = model.manifest;
  return {{"format", format},
          {"leeway_version", kVersion},
          {"job", manifest.job().metadata().name()},
          {"clock", std::to_string(manifest.clock())},
          {"weights_sha256", WeightsSha256(weights)}};
}

absl::Status ExportModel(const TrainedModel& model, std::span<const float> weights,
                         const std::string& path, WriteTo to) {
  return WriteSafetensors(path, model.manifest.schema(), weights,
                          ExportMetadata(model, weights, "leeway"), to);
}

}  // namespace leeway
