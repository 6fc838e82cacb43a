// Searches for CUDA's libraries at run time, so that a package of the module does not have to
// depend on them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace leeway::cuda {

// The folders to search, in order: those of LEEWAY_CUDA_LIBRARIES (separated by ':'), this module's
// own, those that the system searches (""), the toolkit's, and those of Python's packages.
std::vector<std::string> LibraryFolders();

// The existing folders of Python's packages of CUDA (such as nvidia/cu13/lib and nvidia/cudnn/lib)
// below `environment`, which is /usr or a virtual environment, for example.
std::vector<std::string> PythonFolders(const std::string& environment);

// Returns "FOLDER/NAME.so.VERSION", or "NAME.so.VERSION" if the folder is "".
std::string LibraryFile(const std::string& folder, const char* name, int version);

// Loads the library from the first folder that has it. Returns null if none does; `errors` then
// says why for each folder.
void* OpenLibrary(const std::vector<std::string>& folders, const char* name, int version,
                  std::vector<std::string>& errors);

// Looks up a function. FAILED_PRECONDITION if `library`, which the error calls `product`, lacks it.
absl::Status TakeFunction(void* library, const char* product, const char* name, void** function);

template <typename Function>
absl::Status Take(void* library, const char* product, const char* name, Function& function) {
  return TakeFunction(library, product, name, reinterpret_cast<void**>(&function));
}

}  // namespace leeway::cuda
