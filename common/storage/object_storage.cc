#include "common/storage/object_storage.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/environment.h"
#include "common/files/files.h"
#include "common/identity.h"
#include "common/object_store/curl_transport.h"
#include "common/status.h"
#include "common/storage/object_file.h"
#include "common/storage/object_writer.h"

namespace leeway {
namespace {

// Converts errors that the user has to correct to INVALID_ARGUMENT. Temporary errors stay as they
// are.
absl::Status AsSetting(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return absl::InvalidArgumentError(status.message());
    default:
      return status;
  }
}

}  // namespace

absl::StatusOr<std::string> ObjectStorage::KeyOf(const std::string& location) const {
  ASSIGN_OR_RETURN(ObjectLocation parsed, ParseObjectLocation(location));
  if (!parsed.key.empty()) return std::move(parsed.key);
  return absl::InvalidArgumentError(absl::StrCat("'", location, "' names a bucket, not an object"));
}

absl::StatusOr<std::string> ObjectStorage::PrefixOf(const std::string& folder) const {
  ASSIGN_OR_RETURN(const ObjectLocation parsed, ParseObjectLocation(folder));
  return parsed.key.empty() ? "" : parsed.key + "/";
}

absl::StatusOr<std::unique_ptr<StoredFile>> ObjectStorage::Open(const std::string& location) {
  ASSIGN_OR_RETURN(const std::string key, KeyOf(location));
  ASSIGN_OR_RETURN(ObjectInfo info, client_->Head(key));
  return std::make_unique<ObjectFile>(client_.get(), location, key, std::move(info));
}

absl::StatusOr<std::unique_ptr<StoredFile>> ObjectStorage::OpenListed(const std::string& location,
                                                                      const StoredEntry& entry) {
  ASSIGN_OR_RETURN(const std::string key, KeyOf(location));
  return std::make_unique<ObjectFile>(client_.get(), location, key,
                                      ObjectInfo{.size = entry.size, .etag = entry.version});
}

absl::StatusOr<std::unique_ptr<StoredFileWriter>> ObjectStorage::Create(
    const std::string& location) {
  ASSIGN_OR_RETURN(const std::string key, KeyOf(location));
  return std::make_unique<ObjectWriter>(client_.get(), location, key,
                                        absl::StrCat(absl::Hex(RandomIdentity())));
}

absl::StatusOr<uint64_t> ObjectStorage::SizeOf(const std::string& location) {
  ASSIGN_OR_RETURN(const std::string key, KeyOf(location));
  ASSIGN_OR_RETURN(const ObjectInfo info, client_->Head(key));
  return info.size;
}

absl::StatusOr<std::vector<StoredEntry>> ObjectStorage::Entries(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(folder));
  ASSIGN_OR_RETURN(const S3Listing listing, client_->List(prefix, "/"));
  std::vector<StoredEntry> entries;
  for (const S3Object& object : listing.objects) {
    // Skip the object with the name of the folder, which some tools make to represent a folder.
    if (object.key.size() <= prefix.size()) continue;
    entries.push_back({object.key.substr(prefix.size()), false, object.size, object.etag});
  }
  for (const std::string& below : listing.prefixes) {
    entries.push_back({below.substr(prefix.size(), below.size() - prefix.size() - 1), true});
  }
  SortByName(entries);
  return entries;
}

absl::Status ObjectStorage::MakeFolder(const std::string& folder) {
  return PrefixOf(folder).status();
}

absl::Status ObjectStorage::RemoveFile(const std::string& location) {
  ASSIGN_OR_RETURN(const std::string key, KeyOf(location));
  return client_->Delete(key);
}

absl::Status ObjectStorage::RemoveFolder(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(folder));
  ASSIGN_OR_RETURN(const S3Listing listing, client_->List(prefix, ""));
  for (const S3Object& object : listing.objects) {
    RETURN_IF_ERROR(client_->Delete(object.key));
  }
  return AbortBelow(prefix);
}

absl::Status ObjectStorage::RemoveUnfinished(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(folder));
  return AbortBelow(prefix);
}

absl::Status ObjectStorage::AbortBelow(const std::string& prefix) {
  const absl::StatusOr<std::vector<S3Upload>> uploads = client_->ListUploads(prefix);
  // Do nothing if the store cannot list uploads. Its own clean-up rules must remove unfinished
  // uploads.
  if (absl::IsUnimplemented(uploads.status())) return absl::OkStatus();
  RETURN_IF_ERROR(uploads.status());
  for (const S3Upload& upload : *uploads) {
    RETURN_IF_ERROR(client_->AbortUpload(upload.key, upload.id));
  }
  if (!uploads->empty()) {
    spdlog::info("removed {} below {}", Counted(uploads->size(), "unfinished upload"),
                 LocationText(client_->bucket(), prefix));
  }
  return absl::OkStatus();
}

absl::Status ObjectStorage::TryOut(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(folder));
  RETURN_IF_ERROR(client_->CheckListable(prefix));
  const std::string key = absl::StrCat(prefix, "probe-", absl::Hex(RandomIdentity()));
  constexpr std::string_view kProbe = "leeway";
  RETURN_IF_ERROR(client_->Put(key, BytesOf(kProbe)));
  uint8_t got[kProbe.size()] = {};
  const absl::Status read = client_->Get(key, "", 0, got);
  RETURN_IF_ERROR(client_->Delete(key));
  return read;
}

absl::Status ObjectStorage::Prepare(const std::string& folder) {
  return AsSetting(Annotate(TryOut(folder), absl::StrCat("trying out ", folder)));
}

absl::StatusOr<std::shared_ptr<Storage>> MakeObjectStorage(const std::string& bucket) {
  S3ClientOptions options{.bucket = bucket};
  ASSIGN_OR_RETURN(options.settings, FindStoreSettings(LookUpEnvironment));
  auto credentials =
      MakeCredentialSource(options.settings.credentials, LookUpEnvironment, options.settings.stall,
                           std::make_shared<CurlTransport>(options.settings.ca_file));
  options.endpoint = AmazonEndpoint(options.settings.region, bucket);
  if (!options.settings.endpoint.empty()) {
    ASSIGN_OR_RETURN(options.endpoint, ParseEndpoint(options.settings.endpoint));
  }
  auto transport = std::make_unique<CurlTransport>(options.settings.ca_file);
  return std::make_shared<ObjectStorage>(std::make_unique<S3Client>(
      std::move(options), std::move(credentials), std::move(transport), RealStoreTime()));
}

}  // namespace leeway
