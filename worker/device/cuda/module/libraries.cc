#include "worker/device/cuda/module/libraries.h"

#include <cstdlib>
#include <utility>

#include <dlfcn.h>
#include <glob.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace leeway::cuda {
namespace {

// Returns the folder of this module, or an empty string if the folder is not known.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&LibraryFolders), &info) == 0) return "";
  const std::string file = info.dli_fname;
  const size_t slash = file.rfind('/');
  return slash == std::string::npos ? "" : file.substr(0, slash);
}

// Returns the folders that match, sorted, so that each search chooses the same library.
std::vector<std::string> Matches(const std::string& pattern) {
  glob_t found = {};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), GLOB_ONLYDIR, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  return paths;
}

}  // namespace

std::vector<std::string> PythonFolders(const std::string& environment) {
  std::vector<std::string> folders;
  // Python packages for CUDA 13 share the folder cu13. Packages for CUDA 12, and cuDNN, have one
  // folder each.
  for (const char* packages : {"site-packages", "dist-packages"}) {
    for (const char* part : {"cu13", "cublas", "cudnn", "cuda_nvrtc"}) {
      const std::string pattern =
          absl::StrCat(environment, "/lib/python3*/", packages, "/nvidia/", part, "/lib");
      for (std::string& path : Matches(pattern)) folders.push_back(std::move(path));
    }
  }
  return folders;
}

std::vector<std::string> LibraryFolders() {
  std::vector<std::string> folders;
  if (const char* named = std::getenv("LEEWAY_CUDA_LIBRARIES"); named != nullptr) {
    folders = absl::StrSplit(named, ':', absl::SkipEmpty());
  }
  if (std::string own = OwnFolder(); !own.empty()) folders.push_back(std::move(own));
  folders.push_back("");
  folders.push_back("/usr/local/cuda/lib64");
  std::vector<std::string> environments;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const char* value = std::getenv(name); value != nullptr) environments.push_back(value);
  }
  if (const char* home = std::getenv("HOME"); home != nullptr) {
    environments.push_back(absl::StrCat(home, "/.local"));
  }
  environments.insert(environments.end(), {"/usr/local", "/usr"});
  for (const std::string& environment : environments) {
    for (std::string& path : PythonFolders(environment)) folders.push_back(std::move(path));
  }
  return folders;
}

std::string LibraryFile(const std::string& folder, const char* name, int version) {
  const std::string file = absl::StrCat(name, ".so.", version);
  return folder.empty() ? file : absl::StrCat(folder, "/", file);
}

void* OpenLibrary(const std::vector<std::string>& folders, const char* name, int version,
                  std::vector<std::string>& errors) {
  for (const std::string& folder : folders) {
    void* const library =
        dlopen(LibraryFile(folder, name, version).c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library != nullptr) return library;
    errors.push_back(dlerror());
  }
  return nullptr;
}

absl::Status TakeFunction(void* library, const char* product, const char* name, void** function) {
  *function = dlsym(library, name);
  if (*function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(product, " has no function ", name, ": install another version of it"));
}

}  // namespace leeway::cuda
