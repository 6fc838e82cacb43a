// The requests of S3 about one bucket, each sent again until it succeeds or cannot.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/object_store/address.h"
#include "common/object_store/credential_source.h"
#include "common/object_store/http.h"
#include "common/object_store/retry.h"
#include "common/object_store/s3_messages.h"
#include "common/object_store/settings.h"

namespace leeway {

// How long a request may take whose body and answer have `bytes` bytes together.
Duration RequestDeadline(uint64_t bytes);

struct ObjectInfo {
  uint64_t size = 0;
  std::string etag;
  // As it was given to BeginUpload.
  std::string mark = {};
  // By keys of the store's key service, or of who put it. Not known of an object that was listed.
  bool encrypted = false;
};

// The sources of time and chance.
struct StoreTime {
  std::function<Time()> now;
  std::function<void(Duration)> pause;
  // Of the pauses between attempts.
  uint64_t seed = 0;
};
// The process's own.
StoreTime RealStoreTime();

struct S3ClientOptions {
  std::string bucket;
  Endpoint endpoint = {};
  StoreSettings settings = {};
};

// Thread-safe; calls block. Errors as s3_errors.h has them; UNAVAILABLE once the retries are used
// up.
class S3Client {
 public:
  // Neither pointer is null.
  S3Client(S3ClientOptions options, std::unique_ptr<CredentialSource> credentials,
           std::unique_ptr<HttpTransport> transport, StoreTime time);

  const std::string& bucket() const { return options_.bucket; }
  const std::string& endpoint() const { return options_.endpoint.host; }
  uint64_t part_bytes() const { return options_.settings.part_bytes; }

  // The object is there, whole, once this is OK. After UNAVAILABLE it may be, too.
  absl::Status Put(const std::string& key, std::span<const uint8_t> body);
  absl::StatusOr<ObjectInfo> Head(const std::string& key);
  // Fills `target` from byte `position` on. DATA_LOSS if the object has another ETag by now.
  absl::Status Get(const std::string& key, const std::string& etag, uint64_t position,
                   std::span<uint8_t> target);
  // OK if there was none.
  absl::Status Delete(const std::string& key);
  // All pages. With a delimiter: only what is directly below the prefix.
  absl::StatusOr<S3Listing> List(const std::string& prefix, const std::string& delimiter);
  // OK if the bucket is there, answers and may be listed.
  absl::Status CheckListable(const std::string& prefix);

  // An upload in parts, of part_bytes or more each but for the last. `mark`: of the object that
  // comes of it, unlike that of any other.
  absl::StatusOr<std::string> BeginUpload(const std::string& key, const std::string& mark);
  // The part's ETag. `number` from 1 to 10,000.
  absl::StatusOr<std::string> PutPart(const std::string& key, const std::string& id,
                                      uint32_t number, std::span<const uint8_t> body);
  // OK also if only the answer was lost: the object that is there then has the mark.
  absl::Status CompleteUpload(const std::string& key, const std::string& id,
                              const std::vector<std::string>& etags, const std::string& mark);
  // OK if there is none any more. UNIMPLEMENTED: the store keeps what it has.
  absl::Status AbortUpload(const std::string& key, const std::string& id);
  // Those that were neither completed nor aborted, whoever began them.
  absl::StatusOr<std::vector<S3Upload>> ListUploads(const std::string& prefix);

 private:
  struct Call;
  absl::StatusOr<HttpAnswer> Send(const Call& call);
  // Once.
  absl::StatusOr<HttpAnswer> Attempt(const Call& call, const Credentials& by);
  // Until `attempt` succeeds or what is wrong will not pass.
  absl::Status Repeat(const std::function<absl::Status(const Credentials& by)>& attempt);
  HttpRequest RequestOf(const Call& call, const Credentials& by) const;
  absl::Status CompleteOnce(const Call& call, const Credentials& by, const std::string& mark);

  const S3ClientOptions options_;
  const std::unique_ptr<CredentialSource> credentials_;
  const std::unique_ptr<HttpTransport> transport_;
  const StoreTime time_;
  // Each call has draws of its own.
  std::atomic<uint64_t> calls_{0};
};

}  // namespace leeway
