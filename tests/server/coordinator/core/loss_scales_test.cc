// The loss scales that workers report are on record before the answer, and the rank's next lives
// get them.
#include "server/coordinator/core/loss_scales.h"

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::loss_scales {
namespace {

CoordinatorOptions Fp16Options(JobShape shape = {}) {
  CoordinatorOptions options = TestOptions(shape);
  options.job.mutable_workers()->set_precision(v1::PRECISION_FP16);
  return options;
}

using Entries = std::vector<std::pair<uint64_t, uint32_t>>;

v1::HeartbeatRequest RequestOf(uint32_t rank, const Entries& entries) {
  v1::HeartbeatRequest request;
  request.set_rank(rank);
  for (const auto& [clock, log2] : entries) {
    v1::LossScale& scale = *request.add_loss_scales();
    scale.set_clock(clock);
    scale.set_log2(log2);
  }
  return request;
}

absl::Status Report(Scenario& job, uint32_t rank, const Entries& entries) {
  v1::HeartbeatRequest request = RequestOf(rank, entries);
  request.set_job(kJob);
  request.set_incarnation(job.incarnations.at(rank));
  request.set_generation(job.generation);
  return job.core.Heartbeat(request, job.now).status();
}

Entries Of(const google::protobuf::RepeatedPtrField<v1::LossScale>& scales) {
  Entries entries;
  for (const v1::LossScale& scale : scales) entries.push_back({scale.clock(), scale.log2()});
  return entries;
}

Entries OfNewLife(Scenario& job, uint32_t rank) {
  const auto reply = job.Worker(rank, 900 + rank);
  INFO(reply.status());
  REQUIRE(reply.ok());
  return Of(reply->loss_scales());
}

TEST_CASE("a loss scale is answered when it is on record, and every new life hears of it") {
  Scenario job(Fp16Options());
  job.Start();
  job.Carry();
  CHECK(absl::IsUnavailable(Report(job, 1, {{8, 15}})));
  // A repeated report does not ask for a second record.
  const size_t records = job.Take<WriteRecord>().size();
  CHECK(records > 0);
  CHECK(Report(job, 1, {{8, 15}}).ok());
  CHECK(job.Take<WriteRecord>().empty());
  CHECK(absl::IsUnavailable(Report(job, 1, {{9, 14}})));
  job.Carry();
  CHECK(Report(job, 1, {{9, 14}}).ok());
  CHECK(OfNewLife(job, 1) == Entries{{8, 15}, {9, 14}});
  CHECK(OfNewLife(job, 0).empty());
}

TEST_CASE("a loss scale waits as long as the disk does") {
  Scenario job(Fp16Options());
  job.Start();
  job.Carry();
  job.keeps_records = false;
  for (int i = 0; i < 3; ++i) {
    CHECK(absl::IsUnavailable(Report(job, 0, {{8, 15}})));
    job.Carry();
  }
  // One record is asked for, and it has the scale.
  const auto records = job.Take<WriteRecord>();
  REQUIRE_FALSE(records.empty());
  CHECK(Of(records.back().record.loss_scales(0).scales()) == Entries{{8, 15}});
  // An older record that becomes durable only now does not count as the answer.
  v1::CoordinatorRecord older = records.back().record;
  older.clear_loss_scales();
  job.core.Answered(RecordDone{older, absl::OkStatus()}, job.now);
  CHECK(absl::IsUnavailable(Report(job, 0, {{8, 15}})));
  job.core.Answered(RecordDone{records.back().record, absl::OkStatus()}, job.now);
  CHECK(Report(job, 0, {{8, 15}}).ok());
}

TEST_CASE(
    "the coordinator after one that was killed knows the loss scales, and so does a resumed run") {
  CoordinatorOptions options = Fp16Options();
  options.ranks.loss_scales.resize(2);
  *options.ranks.loss_scales[1].mutable_scales() = RequestOf(1, {{8, 15}, {700, 14}}).loss_scales();
  Scenario job(options);
  job.Start();
  job.Carry();
  CHECK(OfNewLife(job, 1) == Entries{{8, 15}, {700, 14}});
  // The new coordinator puts the scales on its own records.
  CHECK(absl::IsUnavailable(Report(job, 0, {{3, 15}})));
  const auto records = job.Take<WriteRecord>();
  CHECK(Of(records.back().record.loss_scales(1).scales()) == Entries{{8, 15}, {700, 14}});
}

TEST_CASE("what no worker of the job can report is refused, and nothing of it is kept") {
  Scenario job(Fp16Options());
  job.Start();
  job.Carry();
  const auto refused = [&](const Entries& entries) {
    return absl::IsInvalidArgument(Report(job, 0, entries));
  };
  CHECK(refused({{8, 25}}));
  CHECK(refused({{8, 0xffffffff}}));
  CHECK(refused({{0, 15}}));
  CHECK(refused({{102, 15}}));
  CHECK(refused({{~uint64_t{0}, 15}}));
  CHECK(refused({{8, 15}, {8, 14}}));
  CHECK(refused({{8, 15}, {7, 14}}));
  Entries many;
  for (uint64_t i = 0; i < 257; ++i) many.push_back({i + 1, 15});
  CHECK(refused(many));
  CHECK(OfNewLife(job, 0).empty());
  // The clock after the job's last one is the largest that is accepted.
  CHECK(absl::IsUnavailable(Report(job, 0, {{101, 15}})));
}

TEST_CASE("only workers of an fp16 job with a gradient exchange report loss scales") {
  CoordinatorOptions fp32 = TestOptions({}), bf16 = TestOptions({});
  bf16.job.mutable_workers()->set_precision(v1::PRECISION_BF16);
  for (const CoordinatorOptions& options : {fp32, bf16, Fp16Options({.elastic = true})}) {
    Scenario job(options);
    job.Start();
    job.Carry();
    CHECK(absl::IsInvalidArgument(Report(job, 0, {{8, 15}})));
    CHECK(Report(job, 0, {}).ok());
  }
}

TEST_CASE("a record that was made up is taken as far as it can be true") {
  CoordinatorOptions options = Fp16Options();
  options.ranks.loss_scales.resize(5);
  *options.ranks.loss_scales[0].mutable_scales() = RequestOf(0, {{8, 99}}).loss_scales();
  *options.ranks.loss_scales[1].mutable_scales() = RequestOf(1, {{9, 15}, {3, 14}}).loss_scales();
  const LossScales scales(options);
  v1::CoordinatorRecord record;
  scales.Fill(record);
  CHECK(record.loss_scales().empty());
  v1::RegisterWorkerReply reply;
  scales.Fill(4, reply);
  CHECK(reply.loss_scales().empty());
}

}  // namespace
}  // namespace leeway::loss_scales
