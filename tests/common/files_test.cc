#include "common/files.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/stat.h>

#include "common/crc32.h"
#include "common/sha256.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway {
namespace {

using Catch::Matchers::Contains;

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST_CASE("a file is written and read back, replaced whole, and nothing else stays") {
  TempFolder folder;
  const std::string path = folder / "a";
  for (const std::string& content : {std::string("one"), std::string(), std::string("a\0b", 3)}) {
    REQUIRE(WriteFileAtomically(path, content).ok());
    REQUIRE(*ReadFile(path, 100) == content);
    REQUIRE(NamesIn(folder.path()) == std::vector<std::string>{"a"});
  }
}

TEST_CASE("a streamed file holds all appends, small and large, in order") {
  TempFolder folder;
  std::string expected;
  {
    auto writer = FileWriter::Create(folder / "big");
    REQUIRE(writer.ok());
    for (size_t i = 0; i < 300; ++i) {
      const std::string part(i % 7 == 0 ? 100'000 : i, static_cast<char>('a' + i % 26));
      expected += part;
      REQUIRE(writer->Append(part).ok());
      REQUIRE_FALSE(std::filesystem::exists(folder / "big"));
    }
    REQUIRE(writer->Finish().ok());
    REQUIRE(absl::IsFailedPrecondition(writer->Finish()));
  }
  REQUIRE(*ReadFile(folder / "big", expected.size()) == expected);
}

TEST_CASE("a writer that is not finished leaves no trace, nor changes what was there") {
  TempFolder folder;
  REQUIRE(WriteFileAtomically(folder / "a", "old").ok());
  {
    auto writer = FileWriter::Create(folder / "a");
    REQUIRE(writer.ok());
    REQUIRE(writer->Append(std::string(200'000, 'x')).ok());
  }
  REQUIRE(*ReadFile(folder / "a", 100) == "old");
  REQUIRE(NamesIn(folder.path()).size() == 1);
}

TEST_CASE("two writers of one path do not disturb each other") {
  TempFolder folder;
  auto first = FileWriter::Create(folder / "a");
  auto second = FileWriter::Create(folder / "a");
  REQUIRE((first.ok() && second.ok()));
  REQUIRE(first->Append("first").ok());
  REQUIRE(second->Append("second").ok());
  REQUIRE(first->Finish().ok());
  REQUIRE(*ReadFile(folder / "a", 100) == "first");
  REQUIRE(second->Finish().ok());
  REQUIRE(*ReadFile(folder / "a", 100) == "second");
}

TEST_CASE("errors name the path and the reason") {
  TempFolder folder;
  const absl::Status missing = ReadFile(folder / "none", 10).status();
  REQUIRE(absl::IsNotFound(missing));
  REQUIRE_THAT(Message(missing), Contains(folder / "none") && Contains("No such file"));
  REQUIRE(WriteFileAtomically(folder / "ten", "0123456789").ok());
  REQUIRE(ReadFile(folder / "ten", 10).ok());
  const absl::Status large = ReadFile(folder / "ten", 9).status();
  REQUIRE(absl::IsResourceExhausted(large));
  REQUIRE_THAT(Message(large), Contains(folder / "ten") && Contains("10 bytes"));
  REQUIRE_THAT(Message(ReadFile(folder.path(), 10).status()), Contains("not a regular file"));
  const absl::Status nowhere = WriteFileAtomically(folder / "no/such/file", "x");
  REQUIRE(absl::IsNotFound(nowhere));
  REQUIRE_THAT(Message(nowhere), Contains(folder / "no/such/file"));
}

TEST_CASE("a pipe where a file should be is refused, not waited on") {
  TempFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  REQUIRE(absl::IsInvalidArgument(ReadFile(folder / "pipe", 10).status()));
}

TEST_CASE("a write that does not fit fails, says so, and leaves the old file") {
  TempFolder folder;
  REQUIRE(WriteFileAtomically(folder / "a", "old").ok());
  struct rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {100'000, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const absl::Status status = WriteFileAtomically(folder / "a", std::string(300'000, 'x'));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  REQUIRE_FALSE(status.ok());
  REQUIRE_THAT(Message(status),
               Contains("writing") && Contains(folder / "a") && Contains("File too large"));
  REQUIRE(*ReadFile(folder / "a", 100) == "old");
  REQUIRE(NamesIn(folder.path()).size() == 1);
}

TEST_CASE("reading beyond the end is data loss that names the byte") {
  TempFolder folder;
  REQUIRE(WriteFileAtomically(folder / "a", "0123456789").ok());
  const auto reader = FileReader::Open(folder / "a");
  REQUIRE(reader.ok());
  std::vector<uint8_t> bytes(4);
  REQUIRE(reader->ReadAt(6, bytes).ok());
  REQUIRE(std::string(bytes.begin(), bytes.end()) == "6789");
  const absl::Status status = reader->ReadAt(8, bytes);
  REQUIRE(absl::IsDataLoss(status));
  REQUIRE_THAT(Message(status), Contains("byte 10"));
}

TEST_CASE("folders are made with those above them, and removed with all that is in them") {
  TempFolder folder;
  REQUIRE(MakeFolders(folder / "a/b/c/").ok());
  REQUIRE(MakeFolders(folder / "a/b/c").ok());
  REQUIRE(WriteFileAtomically(folder / "a/b/c/file", "x").ok());
  REQUIRE_THAT(Message(MakeFolders(folder / "a/b/c/file")), Contains("Not a directory"));
  REQUIRE_FALSE(MakeFolders(folder / "a/b/c/file/d").ok());
  REQUIRE(RemoveTree(folder / "a").ok());
  REQUIRE_FALSE(std::filesystem::exists(folder / "a"));
  REQUIRE(RemoveTree(folder / "a").ok());
}

TEST_CASE("SHA-256 and CRC-32 give the published values, in one piece or in several") {
  const std::string abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  REQUIRE(HexSha256("abc") == abc);
  REQUIRE(HexSha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 digest;
  digest.Update(BytesOf("a"));
  digest.Update({});
  digest.Update(BytesOf("bc"));
  REQUIRE(digest.Hex() == abc);
  const std::vector<float> weights = {1.0f};
  REQUIRE(WeightsSha256(weights) == HexSha256(std::string_view("\0\0\x80\x3f", 4)));
  REQUIRE(Crc32(BytesOf("123456789")) == 0xcbf43926u);
  REQUIRE(Crc32(BytesOf("6789"), Crc32(BytesOf("12345"))) == 0xcbf43926u);
  REQUIRE(Crc32({}, 7) == 7);
}

}  // namespace
}  // namespace leeway
