// Where CUDA's libraries are looked for at run time: the module depends on none that a package
// would have to name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace leeway::cuda {

// In order: the folders of LEEWAY_CUDA_LIBRARIES (with ':' between them), this module's own, where
// the system looks (""), the toolkit's, and those that Python's packages bring.
std::vector<std::string> LibraryFolders();

// The folders of Python's packages of CUDA (nvidia/cu13/lib, nvidia/cudnn/lib, ...) below
// `environment`, such as /usr or a virtual environment, as far as they are there.
std::vector<std::string> PythonFolders(const std::string& environment);

// "FOLDER/NAME.so.VERSION"; a folder "" is left out.
std::string LibraryFile(const std::string& folder, const char* name, int version);

// The first of the folders' libraries that loads, or null; `errors` has why the others do not.
void* OpenLibrary(const std::vector<std::string>& folders, const char* name, int version,
                  std::vector<std::string>& errors);

// FAILED_PRECONDITION: `library`, named `product` in the error, lacks the function.
absl::Status TakeFunction(void* library, const char* product, const char* name, void** function);

template <typename Function>
absl::Status Take(void* library, const char* product, const char* name, Function& function) {
  return TakeFunction(library, product, name, reinterpret_cast<void**>(&function));
}

}  // namespace leeway::cuda
