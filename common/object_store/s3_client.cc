#include "common/object_store/s3_client.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/files/digest.h"
#include "common/identity.h"
#include "common/object_store/s3_errors.h"
#include "common/retry_hint.h"
#include "common/status.h"

namespace leeway {
namespace {

// The time limit of a request without bytes. The bytes of the request and of the answer extend the
// limit, by a second for each kBytesASecond.
constexpr std::chrono::seconds kEmptyRequestDeadline(30);
constexpr uint64_t kBytesASecond = 128 << 10;
// The maximum size of a listing or an error.
constexpr uint64_t kDocumentBytesMax = 16 << 20;
constexpr char kMark[] = "x-amz-meta-leeway-upload";

// Returns whether the object is encrypted with keys of the store's key service, or of its owner.
// The ETag of such an object is not an MD5.
bool EncryptsByKeys(const HttpAnswer& head) {
  return absl::StartsWith(head.Header("x-amz-server-side-encryption"), "aws:kms") ||
         !head.Header("x-amz-server-side-encryption-customer-algorithm").empty();
}

std::span<const uint8_t> BytesIn(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

Duration RequestDeadline(uint64_t bytes) {
  // About eight years. A store may report any size, and a Duration holds 292 years.
  constexpr uint64_t kSecondsMax = 1 << 28;
  return kEmptyRequestDeadline + std::chrono::seconds(std::min(bytes / kBytesASecond, kSecondsMax));
}

// One request.
struct S3Client::Call {
  // S3's name for the operation, for messages.
  const char* operation;
  const char* method;
  std::string key = {};
  Query query = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::span<const uint8_t> body = {};
  uint64_t answer_bytes_max = kDocumentBytesMax;
};

StoreTime RealStoreTime() {
  return {.now = [] { return std::chrono::steady_clock::now(); },
          .pause = [](Duration pause) { std::this_thread::sleep_for(pause); },
          .seed = RandomIdentity()};
}

S3Client::S3Client(S3ClientOptions options, std::unique_ptr<CredentialSource> credentials,
                   std::unique_ptr<HttpTransport> transport, StoreTime time)
    : options_(std::move(options)),
      credentials_(std::move(credentials)),
      transport_(std::move(transport)),
      time_(std::move(time)) {}

HttpRequest S3Client::RequestOf(const Call& call, const Credentials& by) const {
  HttpRequest request{.method = call.method,
                      .url = UrlOf(options_.endpoint, options_.bucket, call.key, call.query),
                      .headers = call.headers,
                      .body = call.body,
                      .region = options_.settings.region,
                      .credentials = by,
                      .deadline = RequestDeadline(call.body.size() + call.answer_bytes_max),
                      .stall = options_.settings.stall,
                      .answer_bytes_max = std::max(call.answer_bytes_max, kDocumentBytesMax)};
  // The signature covers this header, so the store refuses a body that was changed in transit.
  request.headers.emplace_back("x-amz-content-sha256", Digest::Sha256().Update(call.body).Hex());
  if (std::string md5 = Digest::Md5().Update(call.body).Base64();
      !call.body.empty() && !md5.empty()) {
    request.headers.emplace_back("Content-MD5", std::move(md5));
  }
  if (!by.session_token.empty()) {
    request.headers.emplace_back("x-amz-security-token", by.session_token);
  }
  return request;
}

absl::StatusOr<HttpAnswer> S3Client::Attempt(const Call& call, const Credentials& by) {
  const std::string asked = absl::StrCat(
      call.operation, " ", LocationText(options_.bucket, call.key), " at ", options_.endpoint.host);
  absl::StatusOr<HttpAnswer> answer = transport_->Send(RequestOf(call, by));
  RETURN_IF_ERROR(Annotate(answer.status(), asked));
  const absl::Status status = StatusOfAnswer(
      asked, *answer, answer->status >= 300 ? ParseS3Error(answer->body) : S3Error());
  if (status.ok()) return answer;
  const auto after = RetryAfter(*answer);
  return after ? WithRetryHint(status, *after) : status;
}

absl::Status S3Client::Repeat(const std::function<absl::Status(const Credentials& by)>& attempt) {
  const Time begun = time_.now();
  StoreRetry retry({.total = options_.settings.retry_total},
                   RandomStream(time_.seed, RandomPurpose::kRetry, {calls_.fetch_add(1)}));
  bool renewed = false;
  while (true) {
    const absl::StatusOr<Credentials> by = credentials_->Get();
    const absl::Status status = by.ok() ? attempt(*by) : by.status();
    if (status.ok()) return status;
    if (by.ok() && absl::IsUnauthenticated(status) && !std::exchange(renewed, true) &&
        credentials_->Renew(*by)) {
      continue;
    }
    if (!IsStoreRetryable(status)) return status;
    const auto pause = retry.PauseAfter(time_.now() - begun, RetryHintOf(status));
    if (!pause) {
      return Annotate(status, absl::StrCat("given up after ", retry.attempts(), " attempts in ",
                                           static_cast<int>(Seconds(time_.now() - begun)), " s"));
    }
    spdlog::warn("{}; trying again", std::string(status.message()));
    time_.pause(*pause);
  }
}

absl::StatusOr<HttpAnswer> S3Client::Send(const Call& call) {
  HttpAnswer answer;
  RETURN_IF_ERROR(Repeat([&](const Credentials& by) {
    absl::StatusOr<HttpAnswer> got = Attempt(call, by);
    if (got.ok()) answer = *std::move(got);
    return got.status();
  }));
  return answer;
}

absl::Status S3Client::Put(const std::string& key, std::span<const uint8_t> body) {
  return Send(Call{.operation = "PutObject", .method = "PUT", .key = key, .body = body}).status();
}

absl::StatusOr<ObjectInfo> S3Client::Head(const std::string& key) {
  ASSIGN_OR_RETURN(const HttpAnswer answer,
                   Send(Call{.operation = "HeadObject", .method = "HEAD", .key = key}));
  ObjectInfo info{.etag = answer.Header("etag"),
                  .mark = answer.Header(kMark),
                  .encrypted = EncryptsByKeys(answer)};
  if (absl::SimpleAtoi(answer.Header("content-length"), &info.size)) return info;
  return absl::InternalError(absl::StrCat("HeadObject ", LocationText(options_.bucket, key),
                                          ": the store did not report the object's size"));
}

absl::Status S3Client::Get(const std::string& key, const std::string& etag, uint64_t position,
                           std::span<uint8_t> target) {
  if (target.empty()) return absl::OkStatus();
  Call call{
      .operation = "GetObject", .method = "GET", .key = key, .answer_bytes_max = target.size()};
  call.headers.emplace_back("Range",
                            absl::StrCat("bytes=", position, "-", position + target.size() - 1));
  if (!etag.empty()) call.headers.emplace_back("If-Match", etag);
  return Repeat([&](const Credentials& by) -> absl::Status {
    ASSIGN_OR_RETURN(const HttpAnswer answer, Attempt(call, by));
    if (answer.status != 206 || answer.body.size() != target.size()) {
      return absl::UnavailableError(absl::StrCat(
          "GetObject ", LocationText(options_.bucket, key), ": HTTP ", answer.status, " with ",
          answer.body.size(), " bytes; expected ", target.size(), " from byte ", position));
    }
    std::memcpy(target.data(), answer.body.data(), target.size());
    return absl::OkStatus();
  });
}

absl::Status S3Client::Delete(const std::string& key) {
  const auto answer = Send(Call{.operation = "DeleteObject", .method = "DELETE", .key = key});
  return absl::IsNotFound(answer.status()) ? absl::OkStatus() : answer.status();
}

absl::Status S3Client::CheckListable(const std::string& prefix) {
  const Query query = {{"list-type", "2"}, {"max-keys", "1"}, {"prefix", prefix}};
  return Send(Call{.operation = "ListObjectsV2", .method = "GET", .query = query}).status();
}

absl::StatusOr<S3Listing> S3Client::List(const std::string& prefix, const std::string& delimiter) {
  S3Listing all;
  do {
    Call call{.operation = "ListObjectsV2", .method = "GET"};
    call.query = {{"list-type", "2"}, {"prefix", prefix}};
    if (!delimiter.empty()) call.query.emplace_back("delimiter", delimiter);
    if (!all.continuation.empty()) call.query.emplace_back("continuation-token", all.continuation);
    S3Listing page;
    RETURN_IF_ERROR(Repeat([&](const Credentials& by) -> absl::Status {
      ASSIGN_OR_RETURN(const HttpAnswer answer, Attempt(call, by));
      ASSIGN_OR_RETURN(page, ParseListing(answer.body));
      return absl::OkStatus();
    }));
    std::move(page.objects.begin(), page.objects.end(), std::back_inserter(all.objects));
    std::move(page.prefixes.begin(), page.prefixes.end(), std::back_inserter(all.prefixes));
    all.continuation = std::move(page.continuation);
  } while (!all.continuation.empty());
  return all;
}

absl::StatusOr<std::string> S3Client::BeginUpload(const std::string& key, const std::string& mark) {
  const Call call{.operation = "CreateMultipartUpload",
                  .method = "POST",
                  .key = key,
                  .query = Query{{"uploads", ""}},
                  .headers = {{"Content-Type", "application/octet-stream"}, {kMark, mark}}};
  std::string id;
  RETURN_IF_ERROR(Repeat([&](const Credentials& by) -> absl::Status {
    ASSIGN_OR_RETURN(const HttpAnswer answer, Attempt(call, by));
    ASSIGN_OR_RETURN(id, ParseUploadId(answer.body));
    return absl::OkStatus();
  }));
  return id;
}

absl::StatusOr<std::string> S3Client::PutPart(const std::string& key, const std::string& id,
                                              uint32_t number, std::span<const uint8_t> body) {
  ASSIGN_OR_RETURN(
      const HttpAnswer answer,
      Send(Call{.operation = "UploadPart",
                .method = "PUT",
                .key = key,
                .query = Query{{"partNumber", std::to_string(number)}, {"uploadId", id}},
                .body = body}));
  std::string etag = answer.Header("etag");
  if (!etag.empty()) return etag;
  return absl::InternalError(absl::StrCat("UploadPart ", LocationText(options_.bucket, key),
                                          ": the store's answer has no ETag for the part"));
}

// Makes one attempt to complete the upload. If an earlier attempt succeeded and only its answer was
// lost, the upload no longer exists and the store returns an error. So if the object exists and has
// this upload's mark, the result is OK.
absl::Status S3Client::CompleteOnce(const Call& call, const Credentials& by,
                                    const std::string& mark) {
  const absl::StatusOr<HttpAnswer> answer = Attempt(call, by);
  absl::Status status = answer.status();
  if (answer.ok()) {
    S3Error error;
    status = ParseCompleted(answer->body, error);
    if (status.ok()) return status;
    if (!error.code.empty()) {
      status =
          StatusOfAnswer(absl::StrCat(call.operation, " ", LocationText(options_.bucket, call.key)),
                         *answer, error);
    }
  }
  if (!IsStoreRetryable(status) && !absl::IsAborted(status)) return status;
  const auto found =
      Attempt(Call{.operation = "HeadObject", .method = "HEAD", .key = call.key}, by);
  return found.ok() && found->Header(kMark) == mark ? absl::OkStatus() : status;
}

absl::Status S3Client::CompleteUpload(const std::string& key, const std::string& id,
                                      const std::vector<std::string>& etags,
                                      const std::string& mark) {
  const std::string body = CompleteRequest(etags);
  const Call call{.operation = "CompleteMultipartUpload",
                  .method = "POST",
                  .key = key,
                  .query = Query{{"uploadId", id}},
                  .headers = {{"Content-Type", "application/xml"}},
                  .body = BytesIn(body)};
  return Repeat([&](const Credentials& by) { return CompleteOnce(call, by, mark); });
}

absl::Status S3Client::AbortUpload(const std::string& key, const std::string& id) {
  const absl::Status status = Send(Call{.operation = "AbortMultipartUpload",
                                        .method = "DELETE",
                                        .key = key,
                                        .query = Query{{"uploadId", id}}})
                                  .status();
  return absl::IsAborted(status) || absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::StatusOr<std::vector<S3Upload>> S3Client::ListUploads(const std::string& prefix) {
  std::vector<S3Upload> all;
  S3Upload after;
  do {
    Call call{.operation = "ListMultipartUploads",
              .method = "GET",
              .query = Query{{"uploads", ""}, {"prefix", prefix}}};
    if (!after.key.empty()) {
      call.query.emplace_back("key-marker", after.key);
      call.query.emplace_back("upload-id-marker", after.id);
    }
    S3Uploads page;
    RETURN_IF_ERROR(Repeat([&](const Credentials& by) -> absl::Status {
      ASSIGN_OR_RETURN(const HttpAnswer answer, Attempt(call, by));
      ASSIGN_OR_RETURN(page, ParseUploads(answer.body));
      return absl::OkStatus();
    }));
    std::move(page.uploads.begin(), page.uploads.end(), std::back_inserter(all));
    after = std::move(page.next);
  } while (!after.key.empty());
  return all;
}

}  // namespace leeway
