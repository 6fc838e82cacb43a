// MakeCpuLibrary for a build without oneDNN: cmake has -DLEEWAY_ONEDNN=OFF, or oneDNN is not
// installed.
#include "worker/compute/onednn/cpu_library.h"

namespace leeway {

std::unique_ptr<CpuLibrary> MakeCpuLibrary(ThreadPool& pool) { return nullptr; }

}  // namespace leeway
