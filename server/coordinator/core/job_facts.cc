#include "server/coordinator/core/job_facts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/protocol.h"
#include "common/status.h"
#include "config/brought_update.h"
#include "config/contributors.h"
#include "config/external.h"
#include "config/length.h"
#include "config/shards.h"
#include "config/topology.h"

namespace leeway {
namespace {

// Returns true if the run's record, or the checkpoint from which the job continues, says that
// programs keep state.
bool ProgramsKeptState(const CoordinatorOptions& options) {
  if (!IsExternal(options.job) || !options.job.exchange().has_gradient()) return false;
  if (options.before && options.before->programs_keep_state()) return true;
  if (!options.resumed) return false;
  const v1::CheckpointManifest& manifest = options.resumed->manifest;
  return manifest.job().exchange().has_gradient() && manifest.worker_states_size() > 0;
}

}  // namespace

JobFacts::JobFacts(CoordinatorOptions options)
    : options_(std::move(options)),
      commits_sets_(CommitsSets(options_.job)),
      brings_update_(BringsUpdate(options_.job)),
      programs_keep_state_(ProgramsKeptState(options_)) {
  if (!brings_update_ || !options_.before || !options_.before->has_update()) return;
  *options_.job.mutable_update() = options_.before->update();
  update_owner_ = "the run so far";
}

bool JobFacts::keeps_state() const { return programs_keep_state_ || KeepsWorkerState(job()); }

absl::Status JobFacts::CheckKeepsState(const v1::HeartbeatRequest& request) const {
  if (!request.keeps_state() || IsExternal(job())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the heartbeat of worker ", request.rank(),
                   ": keeps_state: only programs of a job with model.type external may set it"));
}

uint32_t JobFacts::shards() const { return ShardsOf(job()); }

uint32_t JobFacts::start_servers() const {
  const bool asked = options_.before && options_.before->servers() > 0;
  const uint32_t servers = asked ? options_.before->servers() : ServersOf(job());
  return std::min(servers, ServersMost(job()));
}

uint64_t JobFacts::StepsBefore() const {
  return options_.before ? options_.before->steps_per_epoch() : 0;
}

absl::Status JobFacts::CheckJob(uint64_t job) const {
  if (job == options_.job_id) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the message is for job ", absl::Hex(job, absl::kZeroPad16), ", but this is job ",
      absl::Hex(options_.job_id, absl::kZeroPad16), ", ", options_.job.metadata().name()));
}

absl::Status JobFacts::CheckPeer(const v1::Build& build, const std::string& who) const {
  if (build.protocol() == kProtocol) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(who, " uses protocol ", build.protocol(), " (version '", build.version(),
                   "'), but this coordinator uses protocol ", kProtocol, " (version '", kVersion,
                   "'): use programs of one version"));
}

absl::Status JobFacts::CheckStop(const v1::JobLength& length, bool by_batches) const {
  // A length in batches cannot be compared with clocks. A restarted coordinator continues a job
  // that has passed this check before.
  if (!options_.resumed || options_.before || by_batches) return absl::OkStatus();
  const v1::CheckpointManifest& manifest = options_.resumed->manifest;
  return CheckStopAhead(manifest.job().stop(), job(), length, manifest.clock());
}

absl::Status JobFacts::CheckUpdate(const v1::RegisterWorkerRequest& request,
                                   const std::string& who) const {
  if (!request.has_update()) {
    if (!brings_update_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(who,
                     ": the job has no `update`, and this program does not say which optimizer it "
                     "has: set leeway_join_options.update, or give the job a rule, such as update: "
                     "{type: sgd, learning_rate: 0.05}"));
  }
  if (!IsExternal(job())) {
    return absl::InvalidArgumentError(absl::StrCat(
        who, " brings an update rule, but only jobs with model.type external accept one"));
  }
  if (!job().exchange().has_gradient()) return absl::OkStatus();
  const v1::Update& brought = request.update();
  RETURN_IF_ERROR(Annotate(ResolveBroughtUpdate(brought).status(), who));
  if (!job().has_update() || MeansRule(brought, job().update())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(who, ": its optimizer is ", UpdateYaml(brought), ", but ",
                   brings_update_ ? absl::StrCat("that of ", update_owner_) : "the job's update",
                   " is ", UpdateYaml(job().update()),
                   brings_update_ ? "; start every worker with the same program and options"
                                  : "; make them equal, or remove `update` from the job, so that "
                                    "the program's optimizer counts"));
}

bool JobFacts::TakeUpdate(const v1::RegisterWorkerRequest& request, const std::string& who) {
  if (!brings_update_ || !update_owner_.empty()) return false;
  auto update = ResolveBroughtUpdate(request.update());
  if (!update.ok()) return false;
  *options_.job.mutable_update() = *std::move(update);
  update_owner_ = who;
  return true;
}

std::optional<AutoChoice> JobFacts::ChooseCodec(bool servers_on_one_host) {
  if (!options_.auto_basis || options_.auto_codec) return std::nullopt;
  const AutoChoice choice = ChooseAuto(*options_.auto_basis, links_, servers_on_one_host);
  options_.auto_codec = choice.codec;
  ResolveAuto(choice.codec, *options_.job.mutable_compression());
  return choice;
}

}  // namespace leeway
