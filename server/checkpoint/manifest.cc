#include "server/checkpoint/manifest.h"

#include <string_view>

#include <google/protobuf/util/json_util.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/sha256.h"
#include "common/status.h"
#include "server/checkpoint/saved_file.h"

namespace leeway {
namespace {

// Some 200 bytes for each of 4096 servers and 65536 workers, and room for the layers.
constexpr uint64_t kMaxManifestBytes = 64 << 20;
constexpr std::string_view kDigestLabel = "sha256 ";
// Label, digest, newline.
constexpr size_t kDigestLineBytes = 7 + 64 + 1;

std::string PathOf(const std::string& folder) { return absl::StrCat(folder, "/", kManifestName); }

std::string DigestLine(std::string_view json) {
  return absl::StrCat("sha256 ", HexSha256(json), "\n");
}

absl::StatusOr<std::string> ToJson(const v1::CheckpointManifest& manifest) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(manifest, &json, options);
  if (!status.ok()) return absl::InternalError(std::string(status.message()));
  if (json.empty() || json.back() != '\n') json += '\n';
  return json;
}

absl::StatusOr<v1::CheckpointManifest> FromJson(const std::string& path, std::string_view json) {
  // A newer format may have new fields: say that it is newer, not that a field is unknown.
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  v1::CheckpointManifest manifest;
  const auto status =
      google::protobuf::util::JsonStringToMessage(std::string(json), &manifest, options);
  if (!status.ok()) {
    return absl::DataLossError(
        absl::StrCat("manifest '", path, "': ", std::string(status.message())));
  }
  return manifest;
}

// A plain name: the manifest may not lead out of its folder.
bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

absl::Status CheckFields(const std::string& path, const v1::CheckpointManifest& manifest) {
  if (manifest.format() != kCheckpointFormat) {
    return absl::UnimplementedError(absl::StrCat("manifest '", path, "': format ",
                                                 manifest.format(), ", but this build reads ",
                                                 kCheckpointFormat));
  }
  const v1::ModelSchema& schema = manifest.schema();
  if (schema.total() == 0 || schema.trained() > schema.total() || manifest.shards().empty()) {
    return absl::DataLossError(absl::StrCat("manifest '", path, "': ", manifest.shards_size(),
                                            " shards of a model of ", schema.total(), " elements, ",
                                            schema.trained(), " trained"));
  }
  bool plain = true;
  for (const auto& shard : manifest.shards()) plain = plain && IsPlainName(shard.file());
  for (const auto& state : manifest.worker_states()) {
    plain = plain && IsPlainName(state.file().file());
  }
  return plain ? absl::OkStatus()
               : absl::DataLossError(
                     absl::StrCat("manifest '", path, "': a file name is not a plain one"));
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

absl::Status WriteManifest(const std::string& folder, v1::CheckpointManifest manifest) {
  const std::string path = PathOf(folder);
  const std::string context = absl::StrCat("writing manifest '", path, "'");
  manifest.set_format(kCheckpointFormat);
  RETURN_IF_ERROR(Annotate(CheckFields(path, manifest), context));
  if (absl::Status files = CheckFileSizes(folder, manifest); !files.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(context, ": ", files.message()));
  }
  ASSIGN_OR_RETURN(const std::string json, ToJson(manifest));
  return WriteFileAtomically(path, absl::StrCat(json, DigestLine(json)));
}

absl::StatusOr<v1::CheckpointManifest> ReadManifest(const std::string& folder) {
  const std::string path = PathOf(folder);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxManifestBytes));
  const size_t end = text.size() - std::min(kDigestLineBytes, text.size());
  const std::string_view json(text.data(), end), line(text.data() + end, text.size() - end);
  if (line.substr(0, kDigestLabel.size()) != kDigestLabel) {
    return absl::DataLossError(
        absl::StrCat("manifest '", path, "', byte ", end, ": no final line 'sha256 HEX'"));
  }
  if (line != DigestLine(json)) {
    return absl::DataLossError(absl::StrCat("manifest '", path, "', bytes 0 to ", end,
                                            ": do not have the SHA-256 of the last line"));
  }
  ASSIGN_OR_RETURN(v1::CheckpointManifest manifest, FromJson(path, json));
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
