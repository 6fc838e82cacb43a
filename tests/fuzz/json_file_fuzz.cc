// MANIFEST.json and coordinator.json. The line with the digest is added here, unless the first byte
// says otherwise: behind a wrong digest nothing is read.
#include <fstream>

#include "common/files/sha256.h"
#include "server/checkpoint/coordinator_record.h"
#include "server/checkpoint/json_file.h"
#include "server/checkpoint/manifest.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/temp_folder.h"

namespace leeway::json_file {
namespace {

void PromiseCode(const absl::Status& status) {
  Promise(status.ok() || absl::IsDataLoss(status) || absl::IsUnimplemented(status),
          "a file that cannot be read is DATA_LOSS, or UNIMPLEMENTED: " + status.ToString());
}

// Writes the message that was read, and reads it again.
template <typename Message>
void PromiseSame(const std::string& path, const Message& message) {
  PromiseOk(WriteJsonFile("file", path, 1 << 20, message), "what was read can be written");
  Message again;
  PromiseOk(ReadJsonFile("file", path, 1 << 20, again), "what was written can be read");
  Promise(again.SerializeAsString() == message.SerializeAsString(), "it is the same");
}

void Read(FuzzInput input) {
  static const TempFolder folder;
  const bool with_digest = !input.Flag();
  const bool manifest = input.Flag();
  std::string text = TextOf(input.Rest());
  if (with_digest) {
    text += '\n';
    text += "sha256 " + HexSha256(text) + "\n";
  }
  const std::string path = folder / (manifest ? kManifestName : kCoordinatorRecordName);
  std::ofstream(path, std::ios::binary) << text;
  if (manifest) {
    const auto found = ReadManifest(folder.path());
    PromiseCode(found.status());
    if (!found.ok()) return;
    for (const auto& shard : found->shards()) {
      Promise(shard.file().find('/') == std::string::npos, "no file leads out of the folder");
    }
    CheckFileSizes(folder.path(), *found).IgnoreError();
    PromiseSame(folder / "again.json", *found);
  } else {
    const auto found = ReadCoordinatorRecord(folder.path());
    PromiseCode(found.status());
    if (found.ok()) PromiseSame(folder / "again.json", found->value());
  }
}

}  // namespace
FUZZ_TARGET(json_file) { Read(input); }

}  // namespace leeway::json_file
