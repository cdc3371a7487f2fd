"""The runtimes of devices that a wheel of TVM lacks, built from the source of its release and kept beside it."""
