// What every storage promises, tested on each of them.
#include "common/storage/storage.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/storage/object_storage.h"
#include "tests/catch.h"
#include "tests/common/object_store/fake_transport.h"
#include "tests/common/storage/memory_storage.h"
#include "tests/common/storage/test_store.h"
#include "tests/temp_folder.h"

namespace leeway::storage {
namespace {

using Names = std::vector<std::string>;

std::string Content(size_t bytes) {
  std::string content(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 2654435761u >> 13);
  return content;
}

void CheckFiles(Storage& storage, const std::string& folder) {
  const std::string location = folder + "/a";
  CHECK(absl::IsNotFound(ReadStored(location, 10).status()));
  CHECK(absl::IsNotFound(storage.SizeOf(location).status()));
  REQUIRE(WriteStored(location, "first").ok());
  CHECK(*ReadStored(location, 10) == "first");
  REQUIRE(WriteStored(location, "second one").ok());
  CHECK(*ReadStored(location, 10) == "second one");
  CHECK(*storage.SizeOf(location) == 10);
  CHECK(absl::IsResourceExhausted(ReadStored(location, 9).status()));
  REQUIRE(WriteStored(location, "").ok());
  CHECK(*ReadStored(location, 10) == "");
  REQUIRE(storage.RemoveFile(location).ok());
  CHECK(absl::IsNotFound(storage.Open(location).status()));
  CHECK(storage.RemoveFile(location).ok());
}

// Where the storage has parts, they are of 64 KiB.
void CheckLargeFiles(Storage& storage, const std::string& folder) {
  for (const size_t bytes : {65535, 65536, 65537, 131072, 300000}) {
    CAPTURE(bytes);
    const std::string location = absl::StrCat(folder, "/large-", bytes);
    const std::string content = Content(bytes);
    auto writer = storage.Create(location);
    REQUIRE(writer.ok());
    REQUIRE((*writer)->Append(BytesOf(std::string_view(content).substr(0, 1000))).ok());
    REQUIRE((*writer)->Append(BytesOf(std::string_view(content).substr(1000))).ok());
    CHECK(absl::IsNotFound(storage.SizeOf(location).status()));
    REQUIRE((*writer)->Finish().ok());
    CHECK_FALSE((*writer)->Finish().ok());
    CHECK(*ReadStored(location, bytes) == content);
    const auto file = storage.Open(location);
    REQUIRE(file.ok());
    CHECK((*file)->location() == location);
    CHECK((*file)->size() == bytes);
    uint8_t middle[100];
    REQUIRE((*file)->ReadAt(bytes - 200, middle).ok());
    CHECK(std::string(reinterpret_cast<char*>(middle), 100) == content.substr(bytes - 200, 100));
    CHECK(absl::IsDataLoss((*file)->ReadAt(bytes - 99, middle)));
  }
}

void CheckUnfinished(Storage& storage, const std::string& folder) {
  const std::string location = folder + "/unfinished";
  REQUIRE(WriteStored(location, "before").ok());
  for (const size_t bytes : {10, 200000}) {
    auto writer = storage.Create(location);
    REQUIRE(writer.ok());
    REQUIRE((*writer)->Append(BytesOf(Content(bytes))).ok());
  }
  CHECK(*ReadStored(location, 100) == "before");
  CHECK(*storage.List(folder) == Names{"unfinished"});
}

// The writer that finishes last wins.
void CheckTwoWriters(Storage& storage, const std::string& folder) {
  const std::string location = folder + "/both";
  auto first = storage.Create(location), second = storage.Create(location);
  REQUIRE((*first)->Append(BytesOf(Content(200000))).ok());
  REQUIRE((*second)->Append(BytesOf(std::string_view("second"))).ok());
  REQUIRE((*second)->Finish().ok());
  CHECK(*ReadStored(location, 100) == "second");
  REQUIRE((*first)->Finish().ok());
  CHECK(*ReadStored(location, 200000) == Content(200000));
}

void CheckFolders(Storage& storage, const std::string& folder) {
  CHECK(storage.List(folder + "/none")->empty());
  for (const char* below : {"/x", "/x-y", "/x/y"}) {
    REQUIRE(storage.MakeFolder(folder + below).ok());
    CHECK(storage.MakeFolder(folder + below).ok());
  }
  for (const char* name : {"/b", "/x/1", "/x/y/2", "/x-y/3"}) {
    REQUIRE(WriteStored(folder + name, name).ok());
  }
  CHECK(*storage.List(folder) == Names{"b", "x", "x-y"});
  CHECK(*storage.List(folder + "/x") == Names{"1", "y"});
  REQUIRE(storage.RemoveFolder(folder + "/x").ok());
  CHECK(storage.RemoveFolder(folder + "/x").ok());
  CHECK(*storage.List(folder) == Names{"b", "x-y"});
}

// Files may have any name.
void CheckNames(Storage& storage, const std::string& folder) {
  Names names = {"a b",   "a+b",       "a%2Fb", "100%",
                 "~x",    "=&?#",      "'\"<>", "\xc3\xa4\xe2\x82\xac",
                 "(1)*!", "a:b@c,d;e$"};
  for (const std::string& name : names) {
    CAPTURE(name);
    REQUIRE(WriteStored(folder + "/" + name, name).ok());
    CHECK(*ReadStored(folder + "/" + name, 100) == name);
  }
  std::sort(names.begin(), names.end());
  CHECK(*storage.List(folder) == names);
  for (const std::string& name : names) CHECK(storage.RemoveFile(folder + "/" + name).ok());
  CHECK(storage.List(folder)->empty());
}

void CheckCopies(const std::string& folder) {
  const TempFolder temporary;
  const std::string content = Content(150000);
  REQUIRE(WriteStored(folder + "/from", content).ok());
  REQUIRE(CopyStored(folder + "/from", temporary / "copy").ok());
  REQUIRE(CopyStored(temporary / "copy", folder + "/to").ok());
  CHECK(*ReadStored(folder + "/to", content.size()) == content);
  CHECK(absl::IsNotFound(CopyStored(folder + "/none", temporary / "none")));
  CHECK_FALSE(std::filesystem::exists(temporary / "none"));
}

void CheckStorage(const std::string& folder) {
  auto storage = StorageOf(folder);
  REQUIRE(storage.ok());
  REQUIRE((*storage)->Prepare(folder).ok());
  CHECK((*storage)->List(folder)->empty());
  SECTION("a file is whole") { CheckFiles(**storage, folder); }
  SECTION("so is a large one") { CheckLargeFiles(**storage, folder); }
  SECTION("or not there") { CheckUnfinished(**storage, folder); }
  SECTION("two writers do not disturb each other") { CheckTwoWriters(**storage, folder); }
  SECTION("folders are listed and removed") { CheckFolders(**storage, folder); }
  SECTION("names are kept") { CheckNames(**storage, folder); }
  SECTION("files are copied from one storage to another") { CheckCopies(folder); }
}

TEST_CASE("a folder keeps the promises of a storage") {
  const TempFolder folder;
  CheckStorage(folder / "run");
}

TEST_CASE("the fake keeps the promises of a storage") {
  MountStorage("memory://", std::make_shared<MemoryStorage>());
  CheckStorage("memory://run");
}

TEST_CASE("an object store keeps the promises of a storage") {
  CheckStorage(TestStore::Get().Folder("run"));
}

TEST_CASE("uploads that nobody finished are removed") {
  const std::string folder = TestStore::Get().Folder("left");
  Storage& storage = **StorageOf(folder);
  // Neither finished nor destroyed, like the writer of a process that was killed.
  auto* const writer = storage.Create(folder + "/sub/killed")->release();
  REQUIRE(writer->Append(BytesOf(Content(200000))).ok());
  auto other = storage.Create(TestStore::Get().Folder("left") + "/other");
  REQUIRE((*other)->Append(BytesOf(Content(200000))).ok());
  REQUIRE(storage.RemoveUnfinished(folder).ok());
  CHECK(absl::IsAborted(writer->Finish()));
  delete writer;
  CHECK((*other)->Finish().ok());
}

TEST_CASE("an upload that is given up is aborted") {
  Scripted script;
  S3ClientOptions options{.bucket = "bucket", .endpoint = *ParseEndpoint("http://store")};
  options.settings.part_bytes = 10;
  ObjectStorage storage(
      std::make_unique<S3Client>(options, std::make_unique<KeptCredentials>(Credentials{}),
                                 std::make_unique<FakeTransport>(&script), script.Clock()));
  script.Answer(200,
                "<InitiateMultipartUploadResult><UploadId>7</UploadId>"
                "</InitiateMultipartUploadResult>");
  script.Answer(200, "", {{"etag", "e"}});
  {
    auto writer = storage.Create("s3://bucket/key");
    REQUIRE((*writer)->Append(BytesOf(Content(15))).ok());
    REQUIRE(script.requests.size() == 2);
  }
  REQUIRE(script.requests.size() == 3);
  CHECK(script.requests.back().method == "DELETE");
  CHECK(script.requests.back().url == "http://store/bucket/key?uploadId=7");
}

TEST_CASE("a location that is none is refused") {
  for (const char* location :
       {"s3://", "s3:///key", "s3://x", "s3://bucket/a//b", "s3://bucket/../b", "s3://bucket/a/.",
        "s3://buc ket/a", "s3://bucket/a\nb"}) {
    CAPTURE(location);
    CHECK(absl::IsInvalidArgument(NormalLocation(location).status()));
  }
  CHECK(*NormalLocation("s3://bucket/a/") == "s3://bucket/a");
  CHECK(*NormalLocation("s3://bucket/") == "s3://bucket");
  CHECK(*NormalLocation("/tmp//x/") == "/tmp//x/");
}

TEST_CASE("wrong credentials and buckets are found when a folder is prepared") {
  const std::string folder = TestStore::Get().Folder("prepared");
  Storage& storage = **StorageOf(folder);
  CHECK(storage.Prepare(folder).ok());
  CHECK(storage.List(folder)->empty());
  const absl::Status none = (*StorageOf("s3://no-such-bucket/x"))->Prepare("s3://no-such-bucket/x");
  CHECK(absl::IsInvalidArgument(none));
  CHECK_THAT(std::string(none.message()), Catch::Contains("NoSuchBucket") &&
                                              Catch::Contains("no-such-bucket") &&
                                              Catch::Contains("HTTP 404"));
}

}  // namespace
}  // namespace leeway::storage
