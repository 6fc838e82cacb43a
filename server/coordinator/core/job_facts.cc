#include "server/coordinator/core/job_facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/protocol.h"
#include "config/contributors.h"
#include "config/length.h"
#include "config/shards.h"

namespace leeway {

JobFacts::JobFacts(CoordinatorOptions options)
    : options_(std::move(options)), commits_sets_(CommitsSets(options_.job)) {}

bool JobFacts::keeps_state() const { return KeepsWorkerState(job()); }

uint32_t JobFacts::shards() const { return ShardsOf(job()); }

uint32_t JobFacts::start_servers() const {
  const bool asked = options_.before && options_.before->servers() > 0;
  const uint32_t servers = asked ? options_.before->servers() : job().servers().count();
  return std::min(servers, shards());
}

uint64_t JobFacts::StepsBefore() const {
  return options_.before ? options_.before->steps_per_epoch() : 0;
}

absl::Status JobFacts::CheckJob(uint64_t job) const {
  if (job == options_.job_id) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the message is for job ", absl::Hex(job, absl::kZeroPad16), ", this is job ",
      absl::Hex(options_.job_id, absl::kZeroPad16), ", ", options_.job.metadata().name()));
}

absl::Status JobFacts::CheckPeer(const v1::Build& build, const std::string& who) const {
  if (build.protocol() == kProtocol) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(who, " speaks protocol ", build.protocol(), " (version '", build.version(),
                   "'), this coordinator protocol ", kProtocol, " (version '", kVersion,
                   "'): use programs of one version"));
}

absl::Status JobFacts::CheckStop(const v1::JobLength& length, bool by_batches) const {
  // Where batches are counted, clocks are no measure; and a coordinator that was started again goes
  // on with what had begun.
  if (!options_.resumed || options_.before || by_batches) return absl::OkStatus();
  const v1::CheckpointManifest& manifest = options_.resumed->manifest;
  return CheckStopAhead(manifest.job().stop(), job(), length, manifest.clock());
}

std::optional<AutoChoice> JobFacts::ChooseCodec(bool servers_on_one_host) {
  if (!options_.auto_basis || options_.auto_codec) return std::nullopt;
  const AutoChoice choice = ChooseAuto(*options_.auto_basis, links_, servers_on_one_host);
  options_.auto_codec = choice.codec;
  ResolveAuto(choice.codec, *options_.job.mutable_compression());
  return choice;
}

}  // namespace leeway
