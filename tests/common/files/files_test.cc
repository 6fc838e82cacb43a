#include "common/files/files.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/crc32.h"
#include "common/files/digest.h"
#include "common/files/open_folder.h"
#include "common/files/sha256.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::files {
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

// Reads from a pipe when the test asks it to; until then nothing waits at the pipe.
class PipeReader {
 public:
  explicit PipeReader(const std::string& path)
      : file_(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {}
  ~PipeReader() { close(file_); }
  std::string Read() const {
    char bytes[4096];
    const ssize_t got = read(file_, bytes, sizeof(bytes));
    return got > 0 ? std::string(bytes, static_cast<size_t>(got)) : "";
  }

 private:
  const int file_;
};

TEST_CASE("what is no regular file is neither read nor replaced, and nobody waits for it") {
  TempFolder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  REQUIRE(MakeFolders(folder / "folder").ok());
  REQUIRE(symlink("pipe", (folder / "link").c_str()) == 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  strncpy(address.sun_path, (folder / "socket").c_str(), sizeof(address.sun_path) - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  for (const std::string& path : {folder / "pipe", folder / "folder", folder / "link",
                                  folder / "socket", std::string("/dev/null")}) {
    INFO(path);
    CHECK_FALSE(ReadFile(path, 10).ok());
    CHECK_FALSE(FileReader::Open(path).ok());
    CHECK_FALSE(WriteFileAtomically(path, "x").ok());
    CHECK_FALSE(FileWriter::Create(path).ok());
  }
  // A pipe that a user has named is refused as long as no process reads it.
  CHECK_FALSE(WriteFileAtomically(folder / "pipe", "x", WriteTo::kAnything).ok());
  CHECK(NamesIn(folder.path()).size() == 4);
  close(socket);
}

TEST_CASE("a folder that was moved or removed is told from the one in its place") {
  TempFolder folder;
  REQUIRE(MakeFolders(folder / "run").ok());
  const auto open = OpenFolder::Open(folder / "run");
  REQUIRE(open.ok());
  CHECK(open->CheckThere().ok());
  REQUIRE(rename((folder / "run").c_str(), (folder / "moved").c_str()) == 0);
  CHECK(absl::IsNotFound(open->CheckThere()));
  REQUIRE(MakeFolders(folder / "run").ok());
  CHECK(absl::IsNotFound(open->CheckThere()));
  CHECK_FALSE(OpenFolder::Open(folder / "none").ok());
}

TEST_CASE("a pipe or a device is written into, not replaced") {
  TempFolder folder;
  const std::string path = folder / "pipe";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  REQUIRE(symlink("pipe", (folder / "link").c_str()) == 0);
  const PipeReader reader(path);
  for (const std::string& name : {path, folder / "link"}) {
    CHECK(CheckWritable(name).ok());
    REQUIRE(WriteFileAtomically(name, "content", WriteTo::kAnything).ok());
    CHECK(reader.Read() == "content");
  }
  CHECK(std::filesystem::is_fifo(path));
  CHECK(std::filesystem::is_symlink(folder / "link"));
  auto writer = FileWriter::Create(path, WriteTo::kAnything);
  REQUIRE(writer.ok());
  REQUIRE(writer->Append("part").ok());
  REQUIRE(writer->Finish().ok());
  CHECK(absl::IsFailedPrecondition(writer->Finish()));
  CHECK(reader.Read() == "part");
  CHECK(NamesIn(folder.path()).size() == 2);
}

TEST_CASE("a symbolic link stays, and what it leads to is written, there already or not") {
  TempFolder folder;
  REQUIRE(MakeFolders(folder / "to").ok());
  REQUIRE(symlink("to/file", (folder / "link").c_str()) == 0);
  REQUIRE(symlink((folder / "link").c_str(), (folder / "far").c_str()) == 0);
  for (const std::string& name : {folder / "link", folder / "far"}) {
    CHECK(CheckWritable(name).ok());
    REQUIRE(WriteFileAtomically(name, name).ok());
    CHECK(*ReadFile(folder / "to/file", 1000) == name);
    CHECK(std::filesystem::is_symlink(name));
  }
  CHECK(NamesIn(folder / "to") == std::vector<std::string>{"file"});
  REQUIRE(symlink("loop", (folder / "loop").c_str()) == 0);
  CHECK_THAT(Message(WriteFileAtomically(folder / "loop", "x")), Contains("symbolic links"));
  CHECK_FALSE(CheckWritable(folder / "loop").ok());
}

TEST_CASE("what this process's own output goes to is written behind it") {
  TempFolder folder;
  const std::string path = folder / "out";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  fflush(stdout);
  const int before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  REQUIRE((file >= 0 && before >= 0));
  dup2(file, STDOUT_FILENO);
  const bool printed = write(STDOUT_FILENO, "table\n", 6) == 6;
  const absl::Status status = WriteFileAtomically("/proc/self/fd/1", "{}\n", WriteTo::kAnything);
  const bool more = write(STDOUT_FILENO, "end\n", 4) == 4;
  dup2(before, STDOUT_FILENO);
  close(before);
  close(file);
  CHECK(status.ok());
  CHECK((printed && more));
  CHECK(*ReadFile(path, 100) == "table\n{}\nend\n");
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

TEST_CASE("SHA-256, MD5 and CRC-32 give the published values, in one piece or in several") {
  const std::string abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  REQUIRE(HexSha256("abc") == abc);
  REQUIRE(HexSha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Digest digest = Digest::Sha256();
  digest.Update(BytesOf("a"));
  digest.Update({});
  digest.Update(BytesOf("bc"));
  REQUIRE(digest.Hex() == abc);
  REQUIRE(Digest::Md5().Update(BytesOf("abc")).Hex() == "900150983cd24fb0d6963f7d28e17f72");
  REQUIRE(Digest::Md5().Update(BytesOf("abc")).Base64() == "kAFQmDzST7DWlj99KOF/cg==");
  const std::vector<float> weights = {1.0f};
  REQUIRE(WeightsSha256(weights) == HexSha256(std::string_view("\0\0\x80\x3f", 4)));
  REQUIRE(Crc32(BytesOf("123456789")) == 0xcbf43926u);
  REQUIRE(Crc32(BytesOf("6789"), Crc32(BytesOf("12345"))) == 0xcbf43926u);
  REQUIRE(Crc32({}, 7) == 7);
}

}  // namespace
}  // namespace leeway::files
