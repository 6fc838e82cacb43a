#include "launcher/doctor/traffic.h"

#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/codec/choose.h"
#include "common/status.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {
namespace {

// Returns the name in a job's text, such as "int8".
std::string NameOf(v1::Encoding encoding) {
  if (encoding == v1::ENCODING_RAW) return "none";
  const std::string name = v1::Encoding_Name(encoding);
  return absl::AsciiStrToLower(absl::StripPrefix(name, "ENCODING_"));
}

// The traffic in one direction.
class Way {
 public:
  void Add(const Codec& codec, uint64_t values) {
    bytes_ += codec.MaxBytes(values);
    ++blocks_[codec.encoding()];
  }
  uint64_t bytes() const { return bytes_; }
  // Returns a string such as "int8", or "none for 2 blocks and int8 for 1 block".
  std::string codecs() const {
    if (blocks_.size() == 1) return NameOf(blocks_.begin()->first);
    std::vector<std::string> parts;
    for (const auto& [encoding, blocks] : blocks_) {
      parts.push_back(
          absl::StrCat(NameOf(encoding), " for ", blocks, blocks == 1 ? " block" : " blocks"));
    }
    return absl::StrJoin(parts, " and ");
  }

 private:
  uint64_t bytes_ = 0;
  std::map<v1::Encoding, uint32_t> blocks_;
};

}  // namespace

absl::StatusOr<CodecPlan> PlannedCodecs(const v1::TrainingJob& job, const v1::ModelSchema& schema,
                                        const BlockLayout& layout) {
  v1::Compression compression = job.compression();
  v1::Codec none;
  none.mutable_none();
  ResolveAuto(none, compression);
  if (!job.has_compression()) {
    *compression.mutable_contributions() = none;
    *compression.mutable_weights() = none;
  }
  return CodecPlan::Make(compression, schema, layout);
}

absl::StatusOr<PlannedTraffic> TrafficOf(const v1::TrainingJob& job, const v1::ModelSchema& schema,
                                         const BlockLayout& layout) {
  const bool chosen_later = HasAuto(job.compression());
  ASSIGN_OR_RETURN(const CodecPlan plan, PlannedCodecs(job, schema, layout));
  Way up, down;
  for (uint32_t block = 0; block < layout.blocks(); ++block) {
    up.Add(plan.contribution(block), layout.Range(block).count);
    down.Add(plan.weights(block), layout.Range(block).count);
  }
  PlannedTraffic traffic{up.bytes(), down.bytes(), ""};
  if (plan.compresses_contributions() || plan.compresses_weights() || chosen_later) {
    traffic.codecs = absl::StrCat(
        "contributions ", up.codecs(), ", weights ", down.codecs(),
        chosen_later ? "; auto, which is chosen when the run begins, counts as none" : "");
  }
  return traffic;
}

}  // namespace leeway
