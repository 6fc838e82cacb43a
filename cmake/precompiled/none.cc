// Nothing: a precompiled header needs a target with a source.
