// A seeded fault for power_cut.py: preloaded, nothing is made durable any more.
extern "C" int fsync(int) { return 0; }
extern "C" int fdatasync(int) { return 0; }
