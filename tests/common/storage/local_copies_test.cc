// Copies of an object store's files are fetched once and whole, and equal the store's files.
#include "common/storage/local_copies.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/files/files.h"
#include "common/object_store/credential_source.h"
#include "common/storage/object_storage.h"
#include "common/storage/read_ahead.h"
#include "tests/catch.h"
#include "tests/common/object_store/fake_transport.h"
#include "tests/common/storage/memory_storage.h"
#include "tests/common/storage/test_store.h"
#include "tests/temp_folder.h"

namespace leeway::local_copies {
namespace {

// A store in memory at "copied://", and a cache.
struct Rig {
  Rig() {
    storage->fault = [this](const std::string& operation, const std::string& location) {
      if (operation == "open") ++opened;
      return operation == "open" ? refusal : absl::OkStatus();
    };
    MountStorage("copied://", storage);
  }
  void Put(const std::string& name, const std::string& content) {
    REQUIRE(WriteStored("copied://" + name, content).ok());
  }
  std::string cache() const { return folder / "made/cache"; }

  TempFolder folder;
  std::shared_ptr<MemoryStorage> storage = std::make_shared<MemoryStorage>();
  std::atomic<int> opened = 0;
  absl::Status refusal;
};

std::string ReadCopy(LocalCopies& copies, const std::string& location) {
  const auto path = copies.Get(location);
  INFO(path.status().ToString());
  REQUIRE(path.ok());
  return ReadFile(*path, 1 << 20).value();
}

// Waits at most 10 s.
bool ComesTrue(const std::function<bool()>& condition) {
  const Time end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// Returns the copies in the cache, without its lock.
std::vector<std::filesystem::path> FilesIn(const std::string& cache) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache)) {
    if (entry.is_regular_file() && entry.path().filename() != "lock") files.push_back(entry.path());
  }
  return files;
}

TEST_CASE("A file is fetched once, by whoever wants it first") {
  Rig rig;
  rig.Put("a/x", "content");
  LocalCopies copies(rig.cache());
  CHECK_FALSE(copies.Has("copied://a/x"));
  // This asks for the current version.
  REQUIRE(copies.Find("copied://a/x").ok());
  REQUIRE(rig.opened == 1);
  std::atomic<int> got = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { got += copies.Get("copied://a/x").ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(got == 8);
  CHECK(rig.opened == 2);
  CHECK(ReadCopy(copies, "copied://a/x") == "content");
  CHECK(copies.Has("copied://a/x"));
  CHECK(FilesIn(rig.cache()).size() == 1);
  // Another process asks for the current version, and fetches nothing.
  const int before = rig.opened;
  LocalCopies other(rig.cache());
  CHECK(ReadCopy(other, "copied://a/x") == "content");
  CHECK(rig.opened == before + 1);
}

TEST_CASE("Nobody else may read the copies") {
  Rig rig;
  rig.Put("a", "content");
  LocalCopies copies(rig.cache());
  REQUIRE(copies.Get("copied://a").ok());
  const auto mode = std::filesystem::status(rig.cache()).permissions();
  CHECK((mode & std::filesystem::perms::mask) == std::filesystem::perms::owner_all);
}

TEST_CASE("A process keeps the version that it began with, and the next one sees the new one") {
  Rig rig;
  rig.Put("a", "first");
  LocalCopies before(rig.cache());
  CHECK(ReadCopy(before, "copied://a") == "first");
  rig.Put("a", "other");
  CHECK(ReadCopy(before, "copied://a") == "first");
  LocalCopies after(rig.cache());
  CHECK(ReadCopy(after, "copied://a") == "other");
}

TEST_CASE("A copy that is gone, or has another length, is fetched again") {
  Rig rig;
  rig.Put("a", "content");
  LocalCopies copies(rig.cache());
  const std::string path = copies.Get("copied://a").value();
  std::filesystem::resize_file(path, 3);
  CHECK(ReadCopy(copies, "copied://a") == "content");
  std::filesystem::remove(path);
  CHECK_FALSE(copies.Has("copied://a"));
  CHECK(ReadCopy(copies, "copied://a") == "content");
}

TEST_CASE("What is wrong with the settings stays wrong, and what may pass is asked again") {
  Rig rig;
  rig.Put("a", "content");
  LocalCopies copies(rig.cache());
  for (const auto code : {absl::StatusCode::kPermissionDenied, absl::StatusCode::kUnauthenticated,
                          absl::StatusCode::kFailedPrecondition}) {
    rig.refusal = absl::Status(code, "why");
    const absl::Status status = copies.Get("copied://a").status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK(status.message() == "why");
  }
  rig.refusal = absl::UnavailableError("why");
  CHECK(absl::IsUnavailable(copies.Get("copied://a").status()));
  rig.refusal = absl::OkStatus();
  CHECK(absl::IsNotFound(copies.Get("copied://none").status()));
  CHECK(ReadCopy(copies, "copied://a") == "content");
}

TEST_CASE("Files of a listing are fetched as they were listed") {
  Rig rig;
  rig.Put("a/x", "1");
  rig.Put("a/b/y", "2");
  LocalCopies copies(rig.cache());
  const auto entries = copies.List("copied://a");
  REQUIRE(entries.ok());
  REQUIRE(entries->size() == 2);
  CHECK((*entries)[0].name == "b");
  CHECK((*entries)[0].is_folder);
  CHECK((*entries)[1].name == "x");
  CHECK((*entries)[1].size == 1);
  CHECK(ReadCopy(copies, "copied://a/x") == "1");
  CHECK(rig.opened == 1);
}

// A client whose store answers by a script.
std::shared_ptr<Storage> ScriptedStorage(Scripted& script) {
  S3ClientOptions options{.bucket = "scripted"};
  options.endpoint = ParseEndpoint("http://store:9000").value();
  options.settings.retry_total = std::chrono::seconds(5);
  return std::make_shared<ObjectStorage>(std::make_unique<S3Client>(
      std::move(options), std::make_unique<KeptCredentials>(Credentials{"id", "secret", ""}),
      std::make_unique<FakeTransport>(&script), script.Clock()));
}

void AnswerListing(Scripted& script, const std::string& key, uint64_t size,
                   const std::string& etag) {
  script.Answer(
      200, absl::StrCat("<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>", key,
                        "</Key><Size>", size, "</Size><ETag>&quot;", etag,
                        "&quot;</ETag></Contents></ListBucketResult>"));
}

// The MD5 of "abc".
constexpr char kMd5[] = "900150983cd24fb0d6963f7d28e17f72";

TEST_CASE("What arrives damaged is fetched again, and refused if it stays so") {
  const TempFolder folder;
  Scripted script;
  MountStorage("s3://scripted/", ScriptedStorage(script));
  const auto head = [&](std::map<std::string, std::string> more = {}) {
    more.insert({{"content-length", "3"}, {"etag", absl::StrCat("\"", kMd5, "\"")}});
    script.Answer(200, "", std::move(more));
  };
  const auto damaged = [&] {
    script.Answer(206, "abd");
    head();
  };
  AnswerListing(script, "a/x", 3, kMd5);
  damaged();
  script.Answer(206, "abc");
  LocalCopies copies(folder / "cache");
  REQUIRE(copies.List("s3://scripted/a").ok());
  CHECK(ReadCopy(copies, "s3://scripted/a/x") == "abc");

  script = Scripted();
  AnswerListing(script, "b/x", 3, kMd5);
  for (int i = 0; i < 3; ++i) damaged();
  REQUIRE(copies.List("s3://scripted/b").ok());
  const absl::Status status = copies.Get("s3://scripted/b/x").status();
  CHECK(absl::IsDataLoss(status));
  CHECK(std::string(status.message()).find("s3://scripted/b/x") != std::string::npos);
  CHECK(FilesIn(folder / "cache").size() == 1);

  // The object is encrypted with keys of the service: its ETag is not an MD5.
  script = Scripted();
  AnswerListing(script, "c/x", 3, kMd5);
  script.Answer(206, "abd");
  head({{"x-amz-server-side-encryption", "aws:kms"}});
  REQUIRE(copies.List("s3://scripted/c").ok());
  CHECK(ReadCopy(copies, "s3://scripted/c/x") == "abd");

  // The object has changed by now.
  script = Scripted();
  AnswerListing(script, "d/x", 3, kMd5);
  script.Refuse(412, "PreconditionFailed");
  REQUIRE(copies.List("s3://scripted/d").ok());
  CHECK(absl::IsDataLoss(copies.Get("s3://scripted/d/x").status()));
  CHECK(script.requests.size() == 2);
}

TEST_CASE("Data for which the disk has no room are refused before anything is fetched") {
  const TempFolder folder;
  Scripted script;
  MountStorage("s3://scripted/", ScriptedStorage(script));
  AnswerListing(script, "a/huge", uint64_t{1} << 60, kMd5);
  LocalCopies copies(folder / "not/yet/there");
  REQUIRE(copies.List("s3://scripted/a").ok());
  const std::vector<std::string> locations = {"s3://scripted/a/huge"};
  for (const absl::Status& status :
       {copies.CheckRoom(locations), copies.Get(locations[0]).status()}) {
    CHECK(absl::IsResourceExhausted(status));
    for (const std::string& part : {std::string("1152921504606846976 bytes"),
                                    folder / "not/yet/there", std::string("LEEWAY_DATA_CACHE")}) {
      CHECK(std::string(status.message()).find(part) != std::string::npos);
    }
  }
  CHECK(script.requests.size() == 1);
}

TEST_CASE("Files are fetched ahead in the order of need, and an error is left to the reader") {
  Rig rig;
  std::vector<std::string> order;
  rig.storage->fault = [&](const std::string& operation, const std::string& location) {
    if (operation == "open" && (order.empty() || order.back() != location)) {
      order.push_back(location);
    }
    return absl::OkStatus();
  };
  for (const char* name : {"c", "a", "b"}) rig.Put(name, name);
  LocalCopies copies(rig.cache());
  const std::vector<std::string> wanted = {"copied://c", "copied://none", "copied://a",
                                           "copied://b"};
  {
    ReadAhead ahead(&copies, 1);
    for (const std::string& location : wanted) ahead.WillNeed(location);
    CHECK(ComesTrue([&] { return copies.Has("copied://b"); }));
  }
  CHECK(order == wanted);
  for (const char* name : {"a", "b", "c"}) CHECK(copies.Has(absl::StrCat("copied://", name)));
}

TEST_CASE("A file that is being fetched is not fetched ahead once more") {
  Rig rig;
  std::atomic<bool> opened = false, goes_on = false;
  rig.storage->fault = [&](const std::string& operation, const std::string& location) {
    if (operation != "open" || location != "copied://slow") return absl::OkStatus();
    opened = true;
    while (!goes_on) std::this_thread::yield();
    return absl::OkStatus();
  };
  for (const char* name : {"slow", "next"}) rig.Put(name, name);
  LocalCopies copies(rig.cache());
  ReadAhead ahead(&copies, 2);
  ahead.WillNeed("copied://slow");
  CHECK(ComesTrue([&] { return opened.load(); }));
  // If it were fetched again, the second thread could not fetch the next file.
  ahead.WillNeed("copied://slow");
  ahead.WillNeed("copied://next");
  CHECK(ComesTrue([&] { return copies.Has("copied://next"); }));
  goes_on = true;
}

TEST_CASE("The cache is where the environment says") {
  std::map<std::string, std::string> variables;
  const EnvironmentLookup look_up = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  CHECK(absl::IsInvalidArgument(CopiesFolder(look_up).status()));
  variables["HOME"] = "/home/me";
  CHECK(CopiesFolder(look_up).value() == "/home/me/.cache/leeway/data");
  variables["XDG_CACHE_HOME"] = "/cache";
  CHECK(CopiesFolder(look_up).value() == "/cache/leeway/data");
  variables["LEEWAY_DATA_CACHE"] = "/scratch";
  CHECK(CopiesFolder(look_up).value() == "/scratch");
}

TEST_CASE("Copies of a real store's objects: small, large, empty") {
  const std::string folder = TestStore::Get().Folder("copies");
  const TempFolder here;
  LocalCopies copies(here / "cache");
  for (const size_t bytes : {0, 1, 70000, 200000}) {
    const std::string location = absl::StrCat(folder, "/", bytes);
    const std::string content(bytes, 'x');
    REQUIRE(WriteStored(location, content).ok());
    CHECK(ReadCopy(copies, location) == content);
  }
  // The listing gives the same versions, so the copies are the same.
  LocalCopies listed(here / "cache");
  REQUIRE(listed.List(folder).ok());
  for (const size_t bytes : {0, 1, 70000, 200000}) {
    CHECK(listed.Has(absl::StrCat(folder, "/", bytes)));
  }
}

}  // namespace
}  // namespace leeway::local_copies
