// An object store for this process's tests: tests/store/store.py, with the bucket "bucket".
#pragma once

#include <string>

#include <sys/types.h>

namespace leeway {

// One store for all tests of a process, which ends with the process. Sets the environment by which
// StorageOf finds it.
class TestStore {
 public:
  // Skips the running test if the machine has no node or npm.
  static const TestStore& Get();
  ~TestStore();
  TestStore(const TestStore&) = delete;

  // s3://bucket/NAME, a prefix that nothing else uses.
  std::string Folder(const std::string& name) const;
  const std::string& endpoint() const { return endpoint_; }

 private:
  TestStore();

  std::string folder_;
  std::string endpoint_;
  // Why there is no store.
  std::string missing_;
  pid_t process_ = -1;
  // The store's input: the store ends when this is closed.
  int lifeline_ = -1;
};

}  // namespace leeway
