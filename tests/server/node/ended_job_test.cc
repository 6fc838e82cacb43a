// What a server 0 answers whose job had ended before it began.
#include "server/node/ended_job.h"

#include <chrono>
#include <memory>

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "absl/strings/str_cat.h"
#include "common/rpc/channel.h"
#include "tests/catch.h"

namespace leeway::ended_job {
namespace {

constexpr uint64_t kJob = 7;

struct EndedRig {
  explicit EndedRig(v1::JobState outcome) : ended(JobOfTwo(), Record(outcome)) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&ended);
    queue = std::make_unique<ServerQueue>(builder);
    server = builder.BuildAndStart();
    ended.Await(queue.get());
    queue->Start();
    stub = v1::Coordinator::NewStub(MakeChannel(absl::StrCat("127.0.0.1:", port)));
  }
  ~EndedRig() {
    server->Shutdown(std::chrono::system_clock::now());
    queue.reset();
  }
  static v1::TrainingJob JobOfTwo() {
    v1::TrainingJob job;
    job.mutable_workers()->set_count(2);
    return job;
  }
  static v1::CoordinatorRecord Record(v1::JobState outcome) {
    v1::CoordinatorRecord record;
    record.set_job_id(kJob);
    record.set_outcome(outcome);
    record.set_message("why");
    return record;
  }
  grpc::Status Leave(uint32_t rank, v1::LeaveReply* reply, uint64_t job = kJob) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    v1::LeaveRequest request;
    request.set_job(job);
    request.set_rank(rank);
    request.set_waits(true);
    return stub->Leave(&context, request, reply);
  }

  EndedJob ended;
  std::unique_ptr<ServerQueue> queue;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<v1::Coordinator::Stub> stub;
};

TEST_CASE("a worker that waits to leave is released by a server 0 that began after the end") {
  EndedRig rig(v1::JOB_FINISHED);
  for (uint32_t rank : {0, 1}) {
    v1::LeaveReply reply;
    REQUIRE(rig.Leave(rank, &reply).ok());
    CHECK(reply.sealed());
  }
  // Both workers have received the outcome, so nothing is waited for.
  rig.ended.WaitUntilHeard(Time::max());
}

TEST_CASE("after the end a worker of another or a failed job is refused, not released") {
  v1::LeaveReply reply;
  EndedRig finished(v1::JOB_FINISHED);
  CHECK(finished.Leave(0, &reply, kJob + 1).error_code() == grpc::StatusCode::ALREADY_EXISTS);
  EndedRig failed(v1::JOB_FAILED);
  const grpc::Status refused = failed.Leave(0, &reply);
  CHECK(refused.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(refused.error_message(), Catch::Contains("the job has failed: why"));
  CHECK_FALSE(reply.sealed());
}

}  // namespace
}  // namespace leeway::ended_job
