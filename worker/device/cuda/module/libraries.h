// Searches for CUDA's libraries at run time, so that a package with this module need not depend on
// them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace leeway::cuda {

// Returns the folders to search, in order: those of LEEWAY_CUDA_LIBRARIES (separated by ':'), this
// module's own folder, the loader's search path (""), the toolkit's folders, and those of Python
// packages.
std::vector<std::string> LibraryFolders();

// Returns the existing folders of CUDA's Python packages (such as nvidia/cu13/lib and
// nvidia/cudnn/lib) below `environment`, which is /usr or a virtual environment, for example.
std::vector<std::string> PythonFolders(const std::string& environment);

// Returns "FOLDER/NAME.so.VERSION", or "NAME.so.VERSION" if the folder is "".
std::string LibraryFile(const std::string& folder, const char* name, int version);

// Loads the library from the first folder that has it. If no folder has it, returns null and writes
// the reason for each folder to `errors`.
void* OpenLibrary(const std::vector<std::string>& folders, const char* name, int version,
                  std::vector<std::string>& errors);

// Looks up a function. Returns FAILED_PRECONDITION if `library` lacks the function. The error calls
// the library `product`.
absl::Status TakeFunction(void* library, const char* product, const char* name, void** function);

template <typename Function>
absl::Status Take(void* library, const char* product, const char* name, Function& function) {
  return TakeFunction(library, product, name, reinterpret_cast<void**>(&function));
}

}  // namespace leeway::cuda
