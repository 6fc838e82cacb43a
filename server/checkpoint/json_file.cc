#include "server/checkpoint/json_file.h"

#include <algorithm>
#include <string_view>

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "common/files/sha256.h"
#include "common/status.h"
#include "common/storage/storage.h"

namespace leeway {
namespace {

constexpr std::string_view kDigestLabel = "sha256 ";
// The size of the last line: label, digest and newline.
constexpr size_t kDigestLineBytes = kDigestLabel.size() + 64 + 1;

std::string DigestLine(std::string_view json) {
  return absl::StrCat(std::string(kDigestLabel), HexSha256(json), "\n");
}

}  // namespace

absl::Status WriteJsonFile(const std::string& what, const std::string& path, uint64_t max_bytes,
                           const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) {
    return absl::InternalError(
        absl::StrCat("writing ", what, " '", path, "': ", std::string(status.message())));
  }
  if (json.empty() || json.back() != '\n') json += '\n';
  if (json.size() + kDigestLineBytes > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("writing ", what, " '", path, "': ", json.size() + kDigestLineBytes,
                     " bytes, but readers accept at most ", max_bytes));
  }
  return WriteStored(path, absl::StrCat(json, DigestLine(json)));
}

absl::Status ReadJsonFile(const std::string& what, const std::string& path, uint64_t max_bytes,
                          google::protobuf::Message& message) {
  ASSIGN_OR_RETURN(const std::string text, ReadStored(path, max_bytes));
  const size_t end = text.size() - std::min(kDigestLineBytes, text.size());
  const std::string_view json(text.data(), end), line(text.data() + end, text.size() - end);
  if (line.substr(0, kDigestLabel.size()) != kDigestLabel) {
    return absl::DataLossError(
        absl::StrCat(what, " '", path, "', byte ", end, ": the last line is not 'sha256 HEX'"));
  }
  if (line != DigestLine(json)) {
    return absl::DataLossError(
        absl::StrCat(what, " '", path, "', bytes 0 to ", end,
                     ": the SHA-256 of these bytes is not the one in the last line"));
  }
  // A newer format may have new fields. The error must say that it is newer, not that a field is
  // unknown.
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status =
      google::protobuf::util::JsonStringToMessage(std::string(json), &message, options);
  if (!status.ok()) {
    return absl::DataLossError(
        absl::StrCat(what, " '", path, "': ", std::string(status.message())));
  }
  // protobuf 3.21 keeps an unknown field whose name is empty. Such a field must be discarded,
  // because it would be written again.
  message.DiscardUnknownFields();
  return absl::OkStatus();
}

}  // namespace leeway
