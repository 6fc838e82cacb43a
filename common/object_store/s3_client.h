// S3's requests about one bucket. Each request is repeated until it succeeds or cannot succeed.
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

// Returns the time limit for a request whose body and answer together have `bytes` bytes.
Duration RequestDeadline(uint64_t bytes);

struct ObjectInfo {
  uint64_t size = 0;
  std::string etag;
  // The mark that was passed to BeginUpload.
  std::string mark = {};
  // Whether the object is encrypted with keys of the store's key service, or of its owner. A
  // listing does not say that, so the field is false for listed objects.
  bool encrypted = false;
};

// The sources of time and randomness.
struct StoreTime {
  std::function<Time()> now;
  std::function<void(Duration)> pause;
  // Seeds the random pauses between attempts.
  uint64_t seed = 0;
};
// Returns functions of the real clock, and a random seed.
StoreTime RealStoreTime();

struct S3ClientOptions {
  std::string bucket;
  Endpoint endpoint = {};
  StoreSettings settings = {};
};

// Thread-safe; calls block. The errors are those of s3_errors.h. A call returns UNAVAILABLE only
// after the last retry.
class S3Client {
 public:
  // The pointers must not be null.
  S3Client(S3ClientOptions options, std::unique_ptr<CredentialSource> credentials,
           std::unique_ptr<HttpTransport> transport, StoreTime time);

  const std::string& bucket() const { return options_.bucket; }
  const std::string& endpoint() const { return options_.endpoint.host; }
  uint64_t part_bytes() const { return options_.settings.part_bytes; }

  // Writes an object in one request. If the result is OK, the object exists, whole. After
  // UNAVAILABLE the object may exist or not.
  absl::Status Put(const std::string& key, std::span<const uint8_t> body);
  absl::StatusOr<ObjectInfo> Head(const std::string& key);
  // Fills `target` from byte `position` on. Returns DATA_LOSS if the object's ETag has changed.
  absl::Status Get(const std::string& key, const std::string& etag, uint64_t position,
                   std::span<uint8_t> target);
  // Deletes an object. Returns OK if the object does not exist.
  absl::Status Delete(const std::string& key);
  // Lists the objects whose keys begin with the prefix, from all pages. With a delimiter, lists
  // only what is directly below the prefix.
  absl::StatusOr<S3Listing> List(const std::string& prefix, const std::string& delimiter);
  // Returns OK if the bucket exists and these credentials may list it.
  absl::Status CheckListable(const std::string& prefix);

  // Begins an upload in parts and returns its id. Each part except the last has part_bytes or more.
  // `mark` is stored with the object. It must differ from the marks of all other uploads.
  absl::StatusOr<std::string> BeginUpload(const std::string& key, const std::string& mark);
  // Uploads one part and returns its ETag. `number` is from 1 to 10,000.
  absl::StatusOr<std::string> PutPart(const std::string& key, const std::string& id,
                                      uint32_t number, std::span<const uint8_t> body);
  // Makes the object from the parts. Also returns OK if an earlier attempt succeeded and only its
  // answer was lost. The mark on the object shows this.
  absl::Status CompleteUpload(const std::string& key, const std::string& id,
                              const std::vector<std::string>& etags, const std::string& mark);
  // Aborts an upload. Returns OK if the upload no longer exists. Returns UNIMPLEMENTED if the store
  // cannot abort uploads and so keeps the parts.
  absl::Status AbortUpload(const std::string& key, const std::string& id);
  // Lists the uploads of all writers that were neither completed nor aborted.
  absl::StatusOr<std::vector<S3Upload>> ListUploads(const std::string& prefix);

 private:
  struct Call;
  absl::StatusOr<HttpAnswer> Send(const Call& call);
  // Sends the request once.
  absl::StatusOr<HttpAnswer> Attempt(const Call& call, const Credentials& by);
  // Repeats `attempt` until it succeeds or fails for good.
  absl::Status Repeat(const std::function<absl::Status(const Credentials& by)>& attempt);
  HttpRequest RequestOf(const Call& call, const Credentials& by) const;
  absl::Status CompleteOnce(const Call& call, const Credentials& by, const std::string& mark);

  const S3ClientOptions options_;
  const std::unique_ptr<CredentialSource> credentials_;
  const std::unique_ptr<HttpTransport> transport_;
  const StoreTime time_;
  // The number of calls so far. Each call's number selects its random draws.
  std::atomic<uint64_t> calls_{0};
};

}  // namespace leeway
